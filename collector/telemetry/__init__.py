"""The one table of metrics, the instruments made from it, and events that log and count together."""

"""Screening: the fast local scorers over every interaction, batched, in worker processes."""

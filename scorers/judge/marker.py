"""The loop guard: what tells an evaluation call from the traffic that it evaluates. Ingest refuses it."""

from __future__ import annotations

HEADER = "x-groundwatch-evaluation"
HEADER_VALUE = "1"
MARKER = "[groundwatch-evaluation]"
"""The first line of every judge prompt."""
ATTRIBUTE = "groundwatch.evaluation"
"""On every span and event of an evaluation; a collector between takes headers off, and leaves attributes."""

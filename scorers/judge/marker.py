"""The loop guard: what tells an evaluation call from the traffic that it evaluates. Ingest refuses it."""

from __future__ import annotations

HEADER = "x-groundwatch-evaluation"
HEADER_VALUE = "1"
MARKER = "[groundwatch-evaluation]"
"""The first line of every judge prompt."""

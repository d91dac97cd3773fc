"""The real Ragas, which warns of itself when it is imported."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any


def load(path: Path) -> list[dict[str, Any]]:
    """What `EvaluationDataset.from_jsonl` makes of the file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas import EvaluationDataset

        return EvaluationDataset.from_jsonl(path).to_list()

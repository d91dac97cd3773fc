"""Which interactions are left out of everything, and why."""

from __future__ import annotations

from enum import StrEnum

from collector.records.found import Found, Mark
from collector.sampling.matching import compiled
from collector.sampling.options import Options


class Left(StrEnum):
    """Why an interaction is left out."""

    OWN_EVALUATION = "own_evaluation"
    NOT_RAG = "not_rag"
    NOT_INCLUDED = "not_included"
    EXCLUDED = "excluded"
    TEST_TRAFFIC = "test_traffic"


class Filters:
    """Applies the rules in the order: own evaluations, test traffic, exclude, include, not RAG."""

    def __init__(self, options: Options) -> None:
        self._include = [compiled(match) for match in options.include]
        self._exclude = [compiled(match) for match in options.exclude]
        self._test_traffic = [compiled(match) for match in options.test_traffic]

    def left_out(self, found: Found) -> Left | None:
        """Why the interaction is left out; None when it is not."""
        if Mark.OWN_EVALUATION in found.marks:
            return Left.OWN_EVALUATION
        if any(match(found) for match in self._test_traffic):
            return Left.TEST_TRAFFIC
        if any(match(found) for match in self._exclude):
            return Left.EXCLUDED
        if self._include and not any(match(found) for match in self._include):
            return Left.NOT_INCLUDED
        if not found.is_rag:
            return Left.NOT_RAG
        return None

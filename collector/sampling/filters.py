"""Which interactions are left out of everything, and why."""

from __future__ import annotations

from enum import StrEnum

from collector.records.found import Found, Mark
from collector.sampling.matching import any_of
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
        self._only_included = bool(options.include)
        self._include = any_of(options.include)
        self._exclude = any_of(options.exclude)
        self._test_traffic = any_of(options.test_traffic)

    def left_out(self, found: Found) -> Left | None:
        """Why the interaction is left out; None when it is not."""
        if Mark.OWN_EVALUATION in found.marks:
            return Left.OWN_EVALUATION
        if self._test_traffic(found):
            return Left.TEST_TRAFFIC
        if self._exclude(found):
            return Left.EXCLUDED
        if self._only_included and not self._include(found):
            return Left.NOT_INCLUDED
        if not found.is_rag:
            return Left.NOT_RAG
        return None

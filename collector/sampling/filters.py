"""Which interactions are left out of everything, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum

from collector.records.found import Found, Mark
from collector.sampling.options import Match, Options
from collector.sampling.patterns import matcher


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
        self._include = _rules(options.include)
        self._exclude = _rules(options.exclude)
        self._test_traffic = _rules(options.test_traffic)

    def left_out(self, found: Found) -> Left | None:
        """Why the interaction is left out; None when it is not."""
        if Mark.OWN_EVALUATION in found.marks:
            return Left.OWN_EVALUATION
        if _any(self._test_traffic, found):
            return Left.TEST_TRAFFIC
        if _any(self._exclude, found):
            return Left.EXCLUDED
        if self._include and not _any(self._include, found):
            return Left.NOT_INCLUDED
        if not found.is_rag:
            return Left.NOT_RAG
        return None


_Rule = tuple[str, Callable[[object], bool]]


def _rules(matches: Iterable[Match]) -> list[_Rule]:
    return [
        (
            match.attribute,
            matcher(equals=match.equals, globs=match.glob, regexes=match.regex, ignore_case=match.ignore_case),
        )
        for match in matches
    ]


def _any(rules: list[_Rule], found: Found) -> bool:
    for name, fits in rules:
        for place in (found.resource, found.attributes):
            if name in place and place[name] is not None and fits(place[name]):
                return True
    return False

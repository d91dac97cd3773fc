"""A review store in memory: for tests of what uses one, and a second reading of the protocol beside SQLite."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from collector.pipeline.clock import Clock
from collector.review.case import Case, merge
from collector.review.codec import storable
from collector.review.labels import Draft, Label, LabelKind, checked, last_undoable
from collector.review.query import (
    BadQuery,
    Erased,
    Facets,
    Page,
    Query,
    Row,
    Sort,
    Stats,
    Subject,
    SubjectKind,
    cursor,
    read_cursor,
)
from collector.review.rows import NO_SCORE, TITLE_CHARS
from collector.review.store import MAX_PAGE, Conflict, NoCase, NothingToUndo
from collector.review.words import indexable, terms


class MemoryStore:
    """Holds at most `max_cases`, dropping the oldest; everything is lost with it. For one thread."""

    def __init__(self, clock: Clock, *, max_cases: int = 10_000) -> None:
        self._clock = clock
        self._max_cases = max_cases
        self._cases: dict[str, Case] = {}
        self._numbers: dict[str, int] = {}
        self._erased: dict[tuple[SubjectKind, str], float] = {}
        self._given = 0

    def put(self, case: Case, ended: Callable[[], None] | None = None) -> bool:
        self._put(case)
        if ended is not None:
            ended()
        return True

    def _put(self, case: Case) -> None:
        if any(self._erased.get(key, -1.0) >= case.ended_unix for key in _keys(case)):
            return
        held = self._cases.get(case.id)
        if held is not None:
            self._cases[case.id] = merge(held, case)
            return
        self._given += 1
        self._numbers[case.id] = self._given
        self._cases[case.id] = storable(replace(case, stored_unix=self._now()))[0]
        self.retain()

    def flush(self, timeout_seconds: float = 30.0) -> None:
        """Everything is written at once."""

    def get(self, case_id: str) -> Case | None:
        return self._cases.get(case_id)

    def find(self, query: Query, *, after: str | None = None, limit: int = 50) -> Page:
        if not 1 <= limit <= MAX_PAGE:
            raise BadQuery(f"a page has 1 to {MAX_PAGE} rows, not {limit}")
        found = self._sorted(query)
        if after is not None:
            place, sign = read_cursor(after), _sign(query)
            found = [one for one in found if (one[0] * sign, one[1] * sign) > (place[0] * sign, place[1] * sign)]
        page = found[:limit]
        more = len(found) > limit
        return Page(tuple(_row(case) for _, _, case in page), cursor(*page[-1][:2]) if more else None)

    def count(self, query: Query, *, at_most: int = 10_000) -> int:
        return min(at_most, len(self._sorted(query)))

    def each(self, query: Query) -> Iterator[Case]:
        yield from [case for _, _, case in self._sorted(query)]

    def facets(self) -> Facets:
        cases = list(self._cases.values())
        segments = {name for case in cases for name in case.segments}
        return Facets(
            services=_counted(cases, lambda case: [case.origin.service]),
            service_versions=_counted(cases, lambda case: [case.origin.service_version]),
            prompt_versions=_counted(cases, lambda case: [case.origin.prompt_version]),
            models=_counted(cases, lambda case: [case.origin.model]),
            causes=_counted(cases, lambda case: [_cause(case)]),
            reasons=_counted(cases, lambda case: [pick.reason.value for pick in case.picks]),
            marks=_counted(cases, lambda case: case.marks),
            metrics=dict(Counter(key for case in cases for key in _scores(case)).most_common()),
            segments={name: _counted(cases, _Segment(name)) for name in sorted(segments)},
            authors=_counted(cases, lambda case: case.in_effect.authors),
        )

    def label(
        self,
        case_id: str,
        drafts: Sequence[Draft],
        *,
        author: str,
        expected_revision: int | None,
        in_order: bool = False,
        source: str = "ui",
    ) -> Case:
        checked(drafts, author)
        case = self._expected(case_id, expected_revision)
        made, now = case.revision + 1, self._now()
        return self._append(
            case,
            [
                Label(one.kind, author, now, made, one.value, one.metric, one.target, in_order, source)
                for one in drafts
            ],
        )

    def undo(self, case_id: str, *, author: str, expected_revision: int | None) -> Case:
        case = self._expected(case_id, expected_revision)
        target = last_undoable(case.labels, author)
        if target is None:
            raise NothingToUndo(case_id, author)
        return self._append(case, [Label(LabelKind.UNDO, author, self._now(), case.revision + 1, target=target)])

    def erase(self, subject: Subject) -> Erased:
        keys = {(subject.kind, one) for one in subject.ids}
        gone = [case for case in self._cases.values() if keys & set(_keys(case))]
        for case in gone:
            del self._cases[case.id]
        self._erased |= dict.fromkeys(keys, self._now())
        return Erased(tuple(case.id for case in gone), sum(len(case.labels) for case in gone))

    def retain(self) -> int:
        if len(self._cases) <= self._max_cases:
            return 0
        order = sorted(
            self._cases.values(),
            key=lambda case: (case.in_effect.golden, bool(case.in_effect.authors), case.ended_unix),
        )
        over = order[: max(0, len(order) - self._max_cases)]
        for case in over:
            del self._cases[case.id]
        return len(over)

    def stats(self) -> Stats:
        cases = list(self._cases.values())
        return Stats(
            cases=len(cases),
            labelled=sum(bool(case.in_effect.authors) for case in cases),
            golden=sum(case.in_effect.golden for case in cases),
            bytes=0,
            waiting=0,
            oldest_unix=min((case.ended_unix for case in cases), default=None),
        )

    def close(self) -> None:
        """There is nothing to let go of."""

    def _now(self) -> float:
        return self._clock.unix_nano() / 1e9

    def _expected(self, case_id: str, revision: int | None) -> Case:
        case = self._cases.get(case_id)
        if case is None:
            raise NoCase(case_id)
        if revision is not None and case.revision != revision:
            raise Conflict(case, revision)
        return case

    def _append(self, case: Case, labels: Sequence[Label]) -> Case:
        case = replace(case, labels=(*case.labels, *labels), revision=labels[-1].revision)
        self._cases[case.id] = case
        return case

    def _sorted(self, query: Query) -> list[tuple[float, int, Case]]:
        found: list[tuple[float, int, Case]] = []
        for case in self._cases.values():
            key = _key(case, query)
            if key is not None and _fits(case, query):
                found.append((key, self._numbers[case.id], case))
        sign = _sign(query)
        return sorted(found, key=lambda one: (one[0] * sign, one[1] * sign))


class _Segment:
    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, case: Case) -> list[str | None]:
        return [case.segments.get(self._name)]


def _sign(query: Query) -> int:
    return -1 if query.sort in (Sort.NEWEST, Sort.HIGHEST) else 1


def _key(case: Case, query: Query) -> float | None:
    """What it is sorted by; None where it does not take part in this order."""
    match query.sort:
        case Sort.NEWEST | Sort.OLDEST:
            return case.ended_unix
        case Sort.DRAWN:
            return case.control.order if case.control is not None else None
    if query.metric is not None:
        return case.score(query.metric, query.kind)
    if case.lowest is None:
        return None if query.sort is Sort.HIGHEST else NO_SCORE
    return case.lowest


def _fits(case: Case, query: Query) -> bool:
    origin, now = case.origin, case.in_effect
    equal = (
        (query.cause, _cause(case)),
        (query.service, origin.service),
        (query.service_version, origin.service_version),
        (query.prompt_version, origin.prompt_version),
        (query.model, origin.model),
        (query.session, origin.session),
        (query.user, origin.user),
        (query.labelled, bool(now.authors)),
        (query.golden, now.golden),
        (query.skipped, now.skipped),
        *((value, case.segments.get(name)) for name, value in query.segments.items()),
    )
    among = (
        (query.reason, [pick.reason for pick in case.picks]),
        (query.mark, case.marks),
        (query.author, now.authors),
        (query.trace_id, origin.trace_ids),
    )
    return (
        all(wanted is None or wanted == value for wanted, value in equal)
        and all(wanted is None or wanted in values for wanted, values in among)
        and (query.since_unix is None or case.ended_unix >= query.since_unix)
        and (query.until_unix is None or case.ended_unix < query.until_unix)
        and _in_range(case, query)
        and _says(case, query.text)
    )


def _in_range(case: Case, query: Query) -> bool:
    if query.metric is None:
        return True
    score = case.score(query.metric, query.kind)
    if score is None:
        return False
    return (query.score_min is None or score >= query.score_min) and (
        query.score_max is None or score <= query.score_max
    )


def _says(case: Case, text: str) -> bool:
    if not text.strip():
        return True
    said = [_tokens(case.interaction.question), _tokens(case.interaction.response)]
    wanted = terms(text)
    return bool(wanted) and all(
        any(_holds(tokens, _tokens(term), beginning) for tokens in said) for term, beginning in wanted
    )


def _tokens(text: str | None) -> list[str]:
    plain = unicodedata.normalize("NFD", indexable(text)).casefold()
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    return "".join(one if one.isalnum() else " " for one in plain).split()


def _holds(tokens: list[str], phrase: list[str], beginning: bool) -> bool:
    size = len(phrase)
    for start in range(len(tokens) - size + 1):
        part = tokens[start : start + size]
        if part == phrase or (beginning and part[:-1] == phrase[:-1] and part[-1].startswith(phrase[-1])):
            return True
    return False


def _keys(case: Case) -> list[tuple[SubjectKind, str]]:
    keys = [(SubjectKind.CASE, case.id), *((SubjectKind.TRACE, one) for one in case.origin.trace_ids)]
    keys += [(SubjectKind.USER, case.origin.user)] if case.origin.user else []
    keys += [(SubjectKind.SESSION, case.origin.session)] if case.origin.session else []
    return keys


def _cause(case: Case) -> str | None:
    return case.diagnosis.cause if case.diagnosis is not None else None


def _scores(case: Case) -> dict[tuple[str, str], float]:
    first = (one for one in case.results if not one.attempt)
    return {(one.metric, one.kind): one.score for one in first if one.score is not None}


def _counted(cases: Sequence[Case], values: Callable[[Case], Sequence[str | None]]) -> dict[str, int]:
    counts = Counter(value for case in cases for value in values(case) if value is not None)
    return dict(sorted(counts.items(), key=lambda one: (-one[1], one[0])))


def _row(case: Case) -> Row:
    control, now = case.control, case.in_effect
    return Row(
        id=case.id,
        title=(case.interaction.question or "")[:TITLE_CHARS],
        ended_unix=case.ended_unix,
        service=case.origin.service,
        service_version=case.origin.service_version,
        prompt_version=case.origin.prompt_version,
        model=case.origin.model,
        cause=_cause(case),
        lowest=case.lowest,
        scores=_scores(case),
        reasons=tuple(sorted({pick.reason for pick in case.picks})),
        probability=case.probability,
        order=control.order if control is not None else None,
        revision=case.revision,
        labelled=bool(now.authors),
        golden=now.golden,
        skipped=now.skipped,
        authors=tuple(sorted(now.authors)),
    )

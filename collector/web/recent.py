"""What the status page remembers of single interactions: the worst of the last hour, and what telemetry lacks."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping

from collector.pipeline.clock import Clock
from collector.records.decision import Fate
from collector.records.found import Mark
from collector.records.settled import Settled
from collector.web.status import Gap, Worst
from scorers.outcome import Score

_KEEP = 500
_SERVICES = 100

_CURES = {
    Mark.HIDDEN: (
        "content",
        "content capture is off in the instrumentation",
    ),
    Mark.NO_QUESTION: ("question", "no value of its own holds the question; name yours in extract.question_keys"),
    Mark.NO_RESPONSE: ("response", "no value of its own holds the answer; name yours in extract.response_keys"),
    Mark.NO_CONTEXT_TEXT: ("context text", "documents carry ids only; record their text on the retriever's span"),
    Mark.UNSPLIT: ("single contexts", "contexts stand only inside the prompt; record them on a retriever's span"),
    Mark.TRUNCATED: ("whole values", "raise OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT in the application"),
    Mark.ATTRIBUTES_DROPPED: ("all attributes", "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT in the application"),
    Mark.SCRUBBED: ("unscrubbed values", "exempt the retriever's documents from the instrumentation's scrubber"),
}


_FOLLOWS = {Mark.NO_QUESTION, Mark.NO_RESPONSE}
"""What goes with content that is switched off, and needs no cure of its own then."""


class Recent:
    """A sink of settled interactions; bounded in items, holds no content.

    `switches` says how each convention's content is turned on.
    `worst` looks at primary quality scores where higher is better, judged ones before local ones.
    """

    def __init__(
        self, clock: Clock, lower_is_better: frozenset[str], switches: Mapping[str, str] | None = None
    ) -> None:
        self._clock = clock
        self._lower = lower_is_better
        self._items: list[tuple[float, float, int, Worst]] = []
        self._serial = 0
        self._switches = switches or {}
        self._gaps: dict[str, Counter[tuple[Mark, str]]] = {}

    def settle(self, settled: Settled) -> None:
        if settled.decision.fate is Fate.FILTERED:
            return
        found = settled.found
        service = found.service or "(no service.name)"
        lacks = found.marks & _CURES.keys()
        if Mark.HIDDEN in lacks:
            lacks -= _FOLLOWS
        for mark in lacks:
            if service in self._gaps or len(self._gaps) < _SERVICES:
                switch = self._switches.get(found.convention or "", "") if mark is Mark.HIDDEN else ""
                self._gaps.setdefault(service, Counter())[mark, switch] += 1
        scored = [
            (result.outcome.value, result)
            for result in (settled.judged or settled.local)
            if isinstance(result.outcome, Score) and result.scorer not in self._lower
        ]
        if not scored:
            return
        value, result = min(scored, key=lambda pair: pair[0])
        self._serial += 1
        worst = Worst(
            trace_id=found.trace_ids[0] if found.trace_ids else "",
            interaction_id=found.interaction.id,
            service=service,
            metric=result.scorer,
            kind=str(result.kind),
            score=round(value, 4),
            ended_unix=found.ended_unix_nano / 1e9,
        )
        # The heap's top is the best of the kept ones, so that a worse newcomer pushes it out.
        heapq.heappush(self._items, (-value, self._clock.monotonic(), self._serial, worst))
        if len(self._items) > _KEEP:
            self._expire()
        if len(self._items) > _KEEP:
            heapq.heappop(self._items)

    def _expire(self) -> None:
        since = self._clock.monotonic() - 3600
        self._items = [item for item in self._items if item[1] >= since]
        heapq.heapify(self._items)

    def worst(self, limit: int) -> list[Worst]:
        """The lowest-scored interactions of the last hour, worst first."""
        self._expire()
        return [item[3] for item in heapq.nlargest(limit, self._items)]

    def gaps(self) -> list[Gap]:
        """What each service's telemetry lacks, most frequent first."""
        gaps = [
            Gap(service, _CURES[mark][0], count, _CURES[mark][1] + (f": {switch}" if switch else ""))
            for service, marks in self._gaps.items()
            for (mark, switch), count in marks.items()
        ]
        return sorted(gaps, key=lambda gap: -gap.interactions)

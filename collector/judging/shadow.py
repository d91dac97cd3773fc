"""A second judge beside the first, on the same interactions, under names of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from scorers.interaction import Interaction
from scorers.outcome import Result
from scorers.scorer import ScorerInfo

if TYPE_CHECKING:  # the names are needed without a judge, the judge's HTTP client is not
    from scorers.judge.service import Judge, JudgedMetric

SUFFIX = "_shadow"
"""Follows the metric's name in everything that the shadow measures, so that no number mixes the two judges."""
_SHARE_OF_DEADLINE = 0.9
"""A shadow that hangs ends before the job's own deadline, which would take the judge's results with it."""


def shadow_info(info: ScorerInfo) -> ScorerInfo:
    """What a scorer of the shadow says of itself: its metrics under the shadow's names."""
    return replace(info, metrics=tuple(metric + SUFFIX for metric in info.gives))


class SideBySide:
    """A judge to the stage: the results of `judge`, and those of `shadow` with `SUFFIX`.

    Both judge at the same time, within the same deadline. What the shadow's calls meet changes nothing in the
    judge's own results; an interaction is settled when both have ended.
    """

    def __init__(self, judge: Judge, shadow: Judge) -> None:
        self._judge = judge
        self._shadow = shadow
        taken = self.beside & {one.metric for one in judge.metrics}
        if taken:
            raise ValueError(
                f"the metric {min(taken)} is a shadow's name (it ends with {SUFFIX}): rename that scorer"
            )

    @property
    def metrics(self) -> Sequence[JudgedMetric]:
        beside = (replace(one, metric=one.metric + SUFFIX) for one in self._shadow.metrics)
        return (*self._judge.metrics, *beside)

    @property
    def beside(self) -> frozenset[str]:
        """The metrics of the shadow: whether they fail says nothing of the judge."""
        return frozenset(one.metric + SUFFIX for one in self._shadow.metrics)

    def available(self) -> bool:
        """Whether the judge takes calls; the shadow holds nothing up."""
        return self._judge.available()

    def capacity(self) -> int:
        """That of the judge."""
        return self._judge.capacity()

    async def score(
        self, interaction: Interaction, deadline_seconds: float | None = None, *, attempt: int = 0
    ) -> list[Result]:
        """The judge's results, then the shadow's."""
        earlier = None if deadline_seconds is None else deadline_seconds * _SHARE_OF_DEADLINE
        own, beside = await asyncio.gather(
            self._judge.score(interaction, deadline_seconds, attempt=attempt),
            self._shadow.score(interaction, earlier, attempt=attempt),
        )
        return [*own, *(replace(one, scorer=one.scorer + SUFFIX, flags=(*one.flags, "shadow")) for one in beside)]

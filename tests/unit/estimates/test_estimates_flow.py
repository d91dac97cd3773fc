"""From screening to the sums through the real flow: the cause is told once, and every sink sees the same."""

from __future__ import annotations

from collections.abc import Sequence

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import Options
from collector.flow import Flow, Segments
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause
from collector.records.found import Found
from collector.records.settled import Screened, Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Result, Score
from scorers.scorer import Kind, Tier

LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST, "f")
JUDGED = Measure("faithfulness", Kind.JUDGED, None, "j")


class KeepsAll:
    def decide(self, found: Found, results: Sequence[Result], *, screening_probability: float) -> Decision:
        return Decision(Fate.QUEUED, 0.5, "rate")

    def segments(self, found: Found) -> Segments:
        return (("service", found.service),)


class Waits:
    """A judge that answers later."""

    def __init__(self) -> None:
        self.jobs: list[tuple[Screened, Decision, Segments]] = []

    def offer(self, screened: Screened, decision: Decision, segments: Segments) -> None:
        self.jobs.append((screened, decision, segments))


class Notes:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    def note(self, trace_id: str, stage: str, text: str, **facts: object) -> None:
        self.lines.append((stage, text, facts))


def test_series_are_born_when_screened_and_the_cause_is_on_what_the_sinks_get() -> None:
    telemetry, clock, judge, notes = Telemetry(), ManualClock(), Waits(), Notes()
    estimates = Estimates(
        Options(), declared=[LOCAL, JUDGED], segment_names=["service"], clock=clock, telemetry=telemetry
    )
    seen: list[Settled] = []
    flow = Flow(
        sampler=KeepsAll(),
        announce=estimates.announce,
        sinks=[estimates.settle, seen.append],
        notes=notes,
        telemetry=telemetry,
        seen=estimates.seen,
        diagnose=estimates.diagnose,
    )
    flow.judges = judge
    found = Found(Interaction("i", contexts=()), trace_ids=("t",), service="shop", service_version="2")
    local = Result("i", "faithfulness", Kind.LOCAL, Score(0.5), "1", "f", tier=Tier.FAST)
    flow.screened(Screened(found, (local,)))
    born = {family.spec.name: dict(family.samples) for family in estimates.families()}
    assert born[metrics.JUDGED_SUMS[0].name]["faithfulness", "j", "shop"] == 0
    assert born[metrics.JUDGED_VERSIONS[0].name]["faithfulness", "j", "shop", "2"] == 0
    (screened, decision, segments) = judge.jobs[0]
    judged = Result("i", "faithfulness", Kind.JUDGED, Score(0.5), "1", "j")
    flow.settled(Settled(found, decision, screened.results, (judged,), segments))
    (settled,) = seen
    assert settled.diagnosis is not None
    assert settled.diagnosis.cause is Cause.NOTHING_RETRIEVED
    assert ("diagnosis", "nothing_retrieved", {"interaction": "i", "kind": "judged"}) in notes.lines
    after = {family.spec.name: dict(family.samples) for family in estimates.families()}
    assert after[metrics.DIAGNOSIS_WEIGHT.name]["nothing_retrieved", "judged", "shop"] == 2
    assert after[metrics.JUDGED_VERSIONS[0].name]["faithfulness", "j", "shop", "2"] == 2

"""The demo's terminal and the status page tell the same of the same interactions."""

from __future__ import annotations

import random

import pytest

from collector.demo.scrape import Snapshot, between, read
from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import Options
from collector.estimates.window import Window
from collector.exporters.prometheus import Format, PrometheusExporter
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Failed, FailedReason, Result, Score
from scorers.scorer import Kind, Tier

LOCAL = Measure("faithfulness", Kind.LOCAL, Tier.FAST)
JUDGED = Measure("faithfulness", Kind.JUDGED)
SESSIONS = 60


class Both:
    """Estimates, read as the page does and as the demo does."""

    def __init__(self) -> None:
        self._dice = random.Random(9)
        self.clock = ManualClock()
        telemetry = Telemetry()
        self.estimates = Estimates(
            Options(),
            declared=[LOCAL, JUDGED],
            segment_names=("service",),
            clock=self.clock,
            telemetry=telemetry,
        )
        self._exporter = PrometheusExporter(telemetry.registry, [self.estimates])

    def settle_sessions(self, first: int, mean: float) -> None:
        """Sessions of one to four questions whose answers are alike; a fifth is judged."""
        for number in range(first, first + SESSIONS):
            good = self._dice.random() < mean
            for turn in range(self._dice.randint(1, 4)):
                score = Score(round(self._dice.uniform(0.8, 1) if good else self._dice.uniform(0, 0.3), 3))
                judged = self._dice.random() < 0.2
                outcome = Failed(FailedReason.INCOMPLETE) if self._dice.random() < 0.05 else score
                found = Found(Interaction(f"{number}/{turn}"), session=f"session-{number}")
                self.estimates.settle(
                    Settled(
                        found=found,
                        decision=Decision(Fate.QUEUED if judged else Fate.SAMPLED_OUT, 0.2, "rate"),
                        local=(_result(LOCAL, outcome),),
                        judged=(_result(JUDGED, score),) if judged else (),
                        segments=(("service", f"shop-{number % 3}"),),
                        screening_probability=1.0,
                    )
                )

    def scraped(self) -> Snapshot:
        return read(self._exporter.text(Format.TEXT).decode())


def _result(measure: Measure, outcome: Score | Failed) -> Result:
    return Result("i", measure.metric, measure.kind, outcome, version="1", fingerprint="f", tier=measure.tier)


def test_the_terminal_and_the_page_show_the_same_intervals() -> None:
    both = Both()
    both.settle_sessions(0, 0.9)
    earlier = both.scraped()
    both.clock.advance(2 * Window.FIVE_MINUTES.seconds)  # what was before is in the page's window no more
    both.settle_sessions(SESSIONS, 0.6)
    shown = {estimate.key: estimate for estimate in between(earlier, both.scraped())}
    assert len(shown) == 2
    for measure in (LOCAL, JUDGED):
        on_page = both.estimates.estimate(measure, Window.FIVE_MINUTES)
        terminal = shown[measure.metric, measure.kind.value, (measure.tier or "")]
        assert terminal.n_eff == pytest.approx(on_page.n_eff, rel=1e-9)
        assert terminal.mean == pytest.approx(on_page.plain_mean, abs=1e-9)
        assert terminal.coverage == pytest.approx(on_page.coverage, abs=1e-9)
        assert not on_page.controlled
        assert terminal.lower == pytest.approx(on_page.lower, abs=1e-9)
        assert terminal.upper == pytest.approx(on_page.upper, abs=1e-9)
    local = both.estimates.estimate(LOCAL, Window.FIVE_MINUTES)
    assert local.cluster_ratio is not None
    assert local.cluster_ratio > 1.5, "sessions matter here, so that the agreement is one about clusters"

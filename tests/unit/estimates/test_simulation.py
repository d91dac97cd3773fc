"""The way from decisions to the interval, simulated: upstream sampling, strata, scores and shedding mixed."""

from __future__ import annotations

import numpy as np

from collector.estimates.estimates import Estimates
from collector.estimates.measures import Measure
from collector.estimates.options import Options
from collector.estimates.window import Window
from collector.pipeline.clock import ManualClock
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction
from scorers.outcome import Result, Score
from scorers.scorer import Kind

RUNS, POPULATION = 600, 700
TRUTH = 0.75 + 0.25 * 2.0 / 3.85
"""Three quarters score 1, the rest Beta(2, 1.85)."""


def test_intervals_cover_the_truth_under_a_mix_of_all_sampling() -> None:
    rng = np.random.default_rng(5)
    estimates = Estimates(
        Options(series_budget=10**6),
        declared=[Measure("faithfulness", Kind.JUDGED)],
        segment_names=["run"],
        clock=ManualClock(),
        telemetry=Telemetry(),
    )
    found = Found(Interaction("i"))
    for run in range(RUNS):
        y = np.where(rng.random(POPULATION) < 0.25, rng.beta(2.0, 1.85, POPULATION), 1.0)
        u = np.where(rng.random(POPULATION) < 0.5, 1.0, 2.0)
        shed = np.where(np.arange(POPULATION) < POPULATION // 2, 1.0, 0.5)
        p = np.where(y < 0.5, 0.5, 0.15) * shed
        kept = (rng.random(POPULATION) < 1 / u) & (rng.random(POPULATION) < p)
        for place in np.flatnonzero(kept):
            judged = Result("i", "faithfulness", Kind.JUDGED, Score(float(y[place])), "1", "f")
            decision = Decision(Fate.QUEUED, float(p[place]), "mix", upstream_weight=float(u[place]))
            estimates.settle(Settled(found, decision, (), (judged,), (("run", str(run)),)))
    runs = [e for e in estimates.all(Window.HOUR) if e.segment is not None and e.n_eff >= 20]
    assert len(runs) > 0.9 * RUNS
    covered = [e.lower <= TRUTH <= e.upper for e in runs if e.lower is not None and e.upper is not None]
    assert len(covered) == len(runs)
    assert 0.93 <= np.mean(covered) <= 0.98
    means = np.array([e.mean for e in runs], dtype=float)
    assert abs(np.mean(means) - TRUTH) < 0.1 * np.std(means) + 2 * np.std(means) / len(means) ** 0.5
    (total,) = (e for e in estimates.all(Window.HOUR) if e.segment is None)
    assert total.lower is not None
    assert total.upper is not None
    assert total.lower <= TRUTH <= total.upper

"""Scenarios of the alerts about quality."""

from __future__ import annotations

from collections.abc import Mapping

from dashboards.names import series
from dashboards.scenarios import INSTRUMENT, Fed, Labels, Scenario, is_at


def quality_scenarios() -> list[Scenario]:
    """All of them."""
    return [*_quality(), *_objectives()]


def estimate(
    level: str, kind: str, mean: float, *, n: float = 400, error: float = 0.1, coverage: float = 1, at: Labels
) -> tuple[Fed, ...]:
    """The last hour's recorded estimate."""
    values = {"mean": mean, "shrunk_mean": mean, "logit_error": error, "n_eff": n, "coverage": coverage}
    values |= {"degrees": n}
    at = {"fingerprint": INSTRUMENT, **at}
    return tuple(is_at(series(level, kind, what, "1h"), value, at=at) for what, value in values.items())


def _quality() -> list[Scenario]:
    labels = {"metric": "faithfulness", "service": "a"}
    total = {"metric": "faithfulness"}
    low, fell, refuses = "GroundwatchQualityLow", "GroundwatchQualityDropped", "GroundwatchRefusalsUp"
    uncovered = ("GroundwatchCoverageLow",)

    def week(level: str, kind: str, mean: float, n: float = 5_000, *, at: Labels) -> tuple[Fed, ...]:
        values = {"mean": mean, "shrunk_mean": mean, "logit_error": 0.03, "n_eff": n}
        at = {"fingerprint": INSTRUMENT, **at}
        return tuple(is_at(series(level, kind, what, "7d"), value, at=at) for what, value in values.items())

    local = {"metric": "faithfulness", "tier": "fast"}
    refusals = {"metric": "noncommittal", "service": "a"}
    refused_locally = {"metric": "noncommittal", "tier": "fast"}
    return [
        Scenario("low", estimate("segment", "judged", 0.6, at=labels), (low,)),
        Scenario("low-in-total", estimate("total", "judged", 0.6, at=total), (low,)),
        Scenario("low-by-chance", estimate("segment", "judged", 0.76, at=labels)),
        Scenario("low-of-few", estimate("segment", "judged", 0.6, n=60, at=labels)),
        Scenario(
            "low-of-what-could-be-scored", estimate("segment", "judged", 0.6, coverage=0.8, at=labels), uncovered
        ),
        Scenario(
            "low-without-floor", estimate("segment", "judged", 0.6, at={"metric": "citations", "service": "a"})
        ),
        Scenario("high", estimate("segment", "judged", 0.95, at=labels)),
        Scenario(
            "fell",
            (*estimate("segment", "judged", 0.85, at=labels), *week("segment", "judged", 0.93, at=labels)),
            (fell,),
        ),
        Scenario(
            "fell-in-total",
            (*estimate("total", "judged", 0.85, at=total), *week("total", "judged", 0.93, at=total)),
            (fell,),
        ),
        Scenario(
            "fell-locally",
            (*estimate("total", "local", 0.85, at=local), *week("total", "local", 0.93, at=local)),
            (fell,),
        ),
        Scenario(
            "fell-of-few",
            (*estimate("segment", "judged", 0.85, n=60, at=labels), *week("segment", "judged", 0.93, at=labels)),
        ),
        Scenario(
            "fell-of-what-could-be-scored",
            (
                *estimate("segment", "judged", 0.85, coverage=0.8, at=labels),
                *week("segment", "judged", 0.93, at=labels),
            ),
            uncovered,
        ),
        Scenario(
            "fell-against-a-young-week",
            (*estimate("segment", "judged", 0.85, at=labels), *week("segment", "judged", 0.93, n=150, at=labels)),
        ),
        Scenario(
            "another-judge-is-stricter",
            (
                *estimate("segment", "judged", 0.85, at={**labels, "fingerprint": "another"}),
                *week("segment", "judged", 0.93, at=labels),
            ),
        ),
        Scenario(
            "fell-while-the-week-knows-another-judge",
            (
                *estimate("segment", "judged", 0.85, at=labels),
                *week("segment", "judged", 0.93, at=labels),
                *week("segment", "judged", 0.99, at={**labels, "fingerprint": "another"}),
            ),
            (fell,),
        ),
        Scenario(
            "fell-a-little",
            (
                *estimate("segment", "judged", 0.91, error=0.01, at=labels),
                *week("segment", "judged", 0.93, at=labels),
            ),
        ),
        Scenario(
            "rose", (*estimate("segment", "judged", 0.97, at=labels), *week("segment", "judged", 0.9, at=labels))
        ),
        Scenario(
            "refuses-more",
            (*estimate("segment", "judged", 0.2, at=refusals), *week("segment", "judged", 0.08, at=refusals)),
            (refuses,),
        ),
        Scenario(
            "refuses-more-locally",
            (
                *estimate("total", "local", 0.2, at=refused_locally),
                *week("total", "local", 0.08, at=refused_locally),
            ),
            (refuses,),
        ),
        Scenario(
            "refuses-less",
            (*estimate("segment", "judged", 0.05, at=refusals), *week("segment", "judged", 0.12, at=refusals)),
        ),
        Scenario(
            "refuses-more-of-few",
            (
                *estimate("segment", "judged", 0.2, n=40, at=refusals),
                *week("segment", "judged", 0.08, at=refusals),
            ),
        ),
    ]


def _objectives() -> list[Scenario]:
    labels = {"objective": "grounded", "metric": "faithfulness", "kind": "judged"}

    def burning(target: float, rates: Mapping[str, float], n: float, coverage: float = 1) -> tuple[Fed, ...]:
        hours = {"30m": 0.5, "1h": 1, "2h": 2, "6h": 6, "1d": 24}
        return (
            is_at("total:groundwatch_objective_budget", 1 - target, at=labels),
            is_at(
                series("total", "judged", "coverage", "1h"),
                coverage,
                metric="faithfulness",
                fingerprint=INSTRUMENT,
            ),
            *(is_at(series("total", "objective", "burn_rate", w), rate, at=labels) for w, rate in rates.items()),
            *(is_at(series("total", "objective", "n_eff", w), n * hours[w], at=labels) for w in rates),
        )

    def all_at(rate: float) -> dict[str, float]:
        return dict.fromkeys(("30m", "1h", "2h", "6h", "1d"), rate)

    burns = "GroundwatchErrorBudgetBurning"
    return [
        Scenario("burns-very-fast", burning(0.95, all_at(16), 150), (burns,) * 3),
        Scenario("burns-fast", burning(0.95, all_at(8), 150), (burns,) * 2),
        Scenario("burns", burning(0.95, all_at(4), 150), (burns,)),
        Scenario("burns-at-the-pace-allowed", burning(0.95, all_at(1), 150)),
        Scenario("burned-and-stopped", burning(0.95, {**all_at(8), "30m": 0.5, "2h": 0.5}, 150)),
        Scenario("burns-of-few", burning(0.95, all_at(16), 3)),
        Scenario("burns-of-what-could-be-scored", burning(0.95, all_at(16), 150, coverage=0.7)),
        Scenario("burns-a-budget-that-is-too-large", burning(0.5, all_at(1.9), 150)),
        Scenario("burns-a-budget-that-is-too-small", burning(0.999, all_at(16), 150)),
    ]

"""Which alerts keep others quiet in Alertmanager: a cause silences what follows from it."""

from __future__ import annotations

from dashboards.options import Options

_JUDGED_BLIND = ("GroundwatchJudgeFailing", "GroundwatchBudgetFuse")
"""While one of these fires, judged numbers speak of an odd part of the traffic."""
_JUDGED_WRONG = "GroundwatchCanaryLow"
"""While it fires, judged numbers are not to be believed."""


def inhibit_rules(options: Options) -> list[dict[str, object]]:
    """The `inhibit_rules` of an Alertmanager configuration."""
    keep = options.keep

    def rule(source: list[str], target: list[str], equal: tuple[str, ...]) -> dict[str, object]:
        return {"source_matchers": source, "target_matchers": target, "equal": list(equal)}

    return [
        rule(
            [f'alertname=~"{"|".join((*_JUDGED_BLIND, _JUDGED_WRONG))}"'],
            ['category="quality"', 'kind="judged"'],
            keep,
        ),
        rule(
            ['alertname="GroundwatchCoverageLow"', 'level="total"'],
            ['category="quality"', 'kind="judged"'],
            (*keep, "metric"),
        ),
        rule(
            [f'alertname=~"{"|".join(_JUDGED_BLIND)}"'],
            ['alertname=~"GroundwatchCoverageLow|GroundwatchNoScores|GroundwatchQueueOld"', 'category="judge"'],
            keep,
        ),
        rule(
            ['alertname="GroundwatchNoTraces"'],
            ['alertname=~"GroundwatchNoInteractions|GroundwatchNoScores"'],
            keep,
        ),
        rule(['alertname="GroundwatchNoInteractions"'], ['alertname="GroundwatchNoScores"'], keep),
        rule(
            ['alertname="GroundwatchQualityLow"'],
            ['alertname=~"GroundwatchQualityDropped|GroundwatchQualityDrifted"'],
            (*keep, "metric", *options.segments),
        ),
        rule(
            ['alertname="GroundwatchErrorBudgetBurning"', 'severity="critical"'],
            ['alertname="GroundwatchErrorBudgetBurning"', 'severity="warning"'],
            (*keep, "objective"),
        ),
    ]

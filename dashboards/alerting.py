"""What an alert is, and how alerts are written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dashboards.options import Options

SEVERITIES = ("critical", "warning", "info")
"""critical wakes somebody, warning is for working hours, info is context."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert rule. `hold` in seconds is how long the expression must hold; several rules may share a name.

    `category` says what is wrong: quality (the answers), judge, instrumentation (what arrives), pipeline (we).
    """

    name: str
    expression: str
    hold: float
    severity: str
    category: str
    summary: str
    description: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def anchor(self) -> str:
        """Anchor of its section in the runbook: the heading is its name."""
        return self.name.lower()

    def written(self, options: Options) -> dict[str, object]:
        hold = {"for": options.time(self.hold)} if self.hold else {}
        return {
            "alert": self.name,
            "expr": self.expression,
            **hold,
            "labels": {"severity": self.severity, "category": self.category, **self.labels},
            "annotations": {
                "summary": self.summary,
                "description": self.description,
                "runbook_url": f"{options.runbook}#{self.anchor}",
            },
        }


def alert_rules(alerts: Iterable[Alert], options: Options) -> dict[str, object]:
    """The content of `alerts.yml`, a group for each category."""
    groups: dict[str, list[dict[str, object]]] = {}
    for alert in alerts:
        groups.setdefault(alert.category, []).append(alert.written(options))
    return {
        "groups": [
            {"name": f"groundwatch_{category}_alerts", "interval": options.time(60), "rules": rules}
            for category, rules in groups.items()
        ]
    }

"""The alert on evidence that a mean got worse than its level."""

from __future__ import annotations

from dashboards.alerting import Alert
from dashboards.drift import WATCHED, beyond, evidence, on, watched_level
from dashboards.options import Options
from dashboards.quality_alerts import leading_cause, where

NAME = "GroundwatchQualityDrifted"
_HOLD_SECONDS = 600


def drift_alerts(options: Options) -> list[Alert]:
    """One alert for each kind and level of what is watched."""
    return [_drifted(kind, level, options) for kind, level in WATCHED]


def _drifted(kind: str, level: str, options: Options) -> Alert:
    return Alert(
        NAME,
        f'{evidence(level)}{{kind="{kind}"}} >= 1 and {on(kind, level, options)} {beyond(kind, level)}',
        hold=_HOLD_SECONDS,
        severity="warning",
        category="quality",
        summary=f"{{{{ $labels.metric }}}} ({kind}) is worse than its level" + where(level, options),
        description=f"The mean is no longer as good as {_told(kind, level, options)}, the level that was set or that "
        "its baseline had: the evidence is {{ $value | humanize }} times what the allowed rate of false alarms asks "
        "for, and an interval lies beyond the level." + leading_cause(level, kind, options),
        labels={"kind": kind, "level": level},
    )


def _told(kind: str, level: str, options: Options) -> str:
    """The level, looked up when the alert fires."""
    labels = (*options.keep, "metric", *(options.segments if level == "segment" else ()))
    matchers = ",".join((*(f"{label}=%q" for label in labels), f'kind=\\"{kind}\\"'))
    given = " ".join(f"$labels.{label}" for label in labels)
    query = f'printf "{watched_level(level)}{{{matchers}}}" {given} | query'
    return f"{{{{ range {query} }}}}{{{{ .Value | humanizePercentage }}}}{{{{ end }}}}"

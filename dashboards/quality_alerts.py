"""Alerts about quality: means under their floor, means that moved against last week, error budgets that burn."""

from __future__ import annotations

from statistics import NormalDist

from dashboards.alerting import Alert
from dashboards.burn import Page, needed_bad, plan
from dashboards.estimates import bound
from dashboards.names import JUDGED, LOCAL, series
from dashboards.options import HOUR, Objective, Options
from dashboards.recording import OBJECTIVE_WINDOWS

LOWER_IS_BETTER = ("noncommittal", "noise_sensitivity.*", "context_duplication", "context_incomplete")
"""Metrics, as regular expressions, of which a high mean is bad."""
DESCRIPTIVE = ("context_count", "language_match", "citations", "retrieval_need")
"""Metrics that describe and do not judge; their change is no alert."""
REFUSALS = "noncommittal"
_LEVELS = ((JUDGED.name, "segment"), (JUDGED.name, "total"), (LOCAL.name, "total"))
"""Where changes are looked for: local sums know clusters only in total."""
_WINDOW_NAMES = {seconds: name for name, seconds in OBJECTIVE_WINDOWS.items()}


def quality_alerts(options: Options) -> list[Alert]:
    """Every alert about the answers themselves."""
    alerts = [_below_floor(level, options) for level in ("segment", "total")]
    for kind, level in _LEVELS:
        alerts += [_fell(kind, level, options), _refusals(kind, level, options)]
    for objective in options.objectives:
        pages = plan(objective, false_alarm=options.false_alarm)
        alerts += [_burn(objective, page, options) for page in pages if isinstance(page, Page)]
    return alerts


def z_of(false_alarm: float) -> float:
    """One-sided normal quantile."""
    return -NormalDist().inv_cdf(false_alarm)


def _enough(level: str, kind: str, options: Options) -> str:
    """The condition that no quality alert fires without."""
    return (
        f"{series(level, kind, 'n_eff', '1h')} >= {options.min_n:g} "
        f"and {series(level, kind, 'coverage', '1h')} >= {options.min_coverage:g}"
    )


def where(level: str, options: Options) -> str:
    if level == "total":
        return " over all segments"
    return " for " + ", ".join(f"{name} {{{{ $labels.{name} }}}}" for name in options.segments)


def leading_cause(level: str, kind: str | None, options: Options) -> str:
    """A sentence of the annotation, filled in when the alert fires: by the scores that the alert is about, whose
    kind is a label of the alert's expression where it is None."""
    labels = (*options.keep, *(options.segments if level == "segment" else ()), *(() if kind else ("kind",)))
    matchers = ",".join(f"{label}=%q" for label in labels) + (f',kind=\\"{kind}\\"' if kind else "")
    given = " ".join(f"$labels.{label}" for label in labels)
    causes = f'{series(level, "cause", "share", "1h")}{{cause!~\\"fine|undetermined\\",{matchers}}} > 0'
    return (
        f' Leading cause in the last hour:{{{{ range printf "topk(1, {causes})" {given} | query }}}} '
        "{{ .Labels.cause }} ({{ .Value | humanizePercentage }} by {{ .Labels.kind }} scores)"
        "{{ else }} none known{{ end }}."
    )


def _below_floor(level: str, options: Options) -> Alert:
    degrees = series(level, JUDGED.name, "degrees" if level == "total" else "n_eff", "1h")
    mean, error = (series(level, JUDGED.name, what, "1h") for what in ("shrunk_mean", "logit_error"))
    highest = bound(mean, error, degrees, z_of(options.false_alarm), "+")
    return Alert(
        "GroundwatchQualityLow",
        f"{highest} < on (metric) group_left () groundwatch:mean_floor and {_enough(level, JUDGED.name, options)}",
        hold=2 * HOUR,
        severity="critical",
        category="quality",
        summary="{{ $labels.metric }} is below its floor" + where(level, options),
        description="For two windows of an hour the mean has been at most {{ $value | humanizePercentage }} (upper "
        f"end of a one-sided interval, wrong once in {1 / options.false_alarm:,.0f} looks), below the floor that was "
        "set." + leading_cause(level, JUDGED.name, options),
        labels={"kind": JUDGED.name, "level": level},
    )


def _moved(kind: str, level: str, only: str, direction: str, *, options: Options) -> str:
    """Means of the last hour that fell or rose against the week before it, by more than the tolerance and by more
    than chance explains: the difference of two log-odds in standard errors."""

    def now(what: str) -> str:
        return f"{series(level, kind, what, '1h')}{{{only}}}"

    def then(what: str) -> str:
        return f"({series(level, kind, what, '7d')}{{{only}}} offset {options.time(HOUR)})"

    high, low = (then, now) if direction == "fell" else (now, then)
    logits = [f"ln({of('shrunk_mean')} / (1 - {of('shrunk_mean')}))" for of in (high, low)]
    return (
        f"{high('mean')} - {low('mean')} > {options.least_drop:g} "
        f"and ({logits[0]} - {logits[1]}) / sqrt({high('logit_error')} ^ 2 + {low('logit_error')} ^ 2) "
        f"> {z_of(options.false_alarm):.3f} "
        f"and {_enough(level, kind, options)} and {then('n_eff')} >= {3 * options.min_n:g}"
    )


def _fell(kind: str, level: str, options: Options) -> Alert:
    others = "|".join((*LOWER_IS_BETTER, *DESCRIPTIVE))
    return Alert(
        "GroundwatchQualityDropped",
        _moved(kind, level, f'metric!~"{others}"', "fell", options=options),
        hold=HOUR // 2,
        severity="warning",
        category="quality",
        summary=f"{{{{ $labels.metric }}}} ({kind}) fell" + where(level, options),
        description="The last hour's mean is {{ $value | humanizePercentage }} of the scale lower than that of the "
        "week before, far more than chance explains." + leading_cause(level, kind, options),
        labels={"kind": kind, "level": level},
    )


def _refusals(kind: str, level: str, options: Options) -> Alert:
    return Alert(
        "GroundwatchRefusalsUp",
        _moved(kind, level, f'metric="{REFUSALS}"', "rose", options=options),
        hold=HOUR // 2,
        severity="warning",
        category="quality",
        summary=f"The application refuses more often ({kind} scores)" + where(level, options),
        description="The share of answers that refuse or evade is {{ $value | humanizePercentage }} higher in the "
        "last hour than in the week before." + leading_cause(level, kind, options),
        labels={"kind": kind, "level": level},
    )


def _burn(objective: Objective, page: Page, options: Options) -> Alert:
    only = "" if objective.name == Objective().name else f'{{objective=~"{objective.name}"}}'
    long, short = _WINDOW_NAMES[page.burn.long], _WINDOW_NAMES[page.short]

    def of(what: str, window: str) -> str:
        return f"{series('total', 'objective', what, window)}{only}"

    budget = "total:groundwatch_objective_budget"
    rate = page.burn.rate
    match = f"on ({', '.join(options.keep)}, metric) "
    covered = " or ".join(
        f'{of("n_eff", short)}{{kind="{kind}"}} and {match}{series("total", kind, "coverage", "1h")} '
        f">= {options.min_coverage:g}".replace("}{", ",")
        for kind in (JUDGED.name, LOCAL.name)
    )
    return Alert(
        "GroundwatchErrorBudgetBurning",
        f"{of('burn_rate', long)} > {rate:g} and {of('burn_rate', short)} > {rate:g} "
        f"and {of('n_eff', long)} >= {options.min_n:g} "
        f"and {of('n_eff', short)} * {budget} >= {needed_bad(rate, options.false_alarm):g} "
        f"and ({covered})",
        hold=120,
        severity=page.burn.severity,
        category="quality",
        summary=f"Objective {{{{ $labels.objective }}}} burns its error budget over {rate:g} times too fast",
        description=f"Over {long} and over {short} the share of bad answers was more than {rate:g} times what the "
        f"objective allows ({{{{ $value | humanize }}}} times over {long}); going on so eats "
        f"{page.burn.budget_share} of the month's budget in {long}." + leading_cause("total", None, options),
        labels={"window": long},
    )

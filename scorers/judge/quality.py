"""From trials on labelled rows to a report: how well the judge agrees, what it costs, how fast and noisy it is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from scorers.judge import figures
from scorers.judge.figures import Figure, Judged
from scorers.judge.trials import SCORED, Trial
from scorers.local.labelled import Labelled, LabelledSet

_PLAN_PAIR = ("standard", "fused")


@dataclass(frozen=True, slots=True)
class MetricReport:
    """One metric on one set under one plan.

    `scored` rows of `rows`; `unscored` counts the rest by outcome and reason. Agreement is over the scored rows,
    first tries only; `spearman` stands in where labels are graded. `noise` is the standard deviation of one row's
    score over repeats, `changed` the share of `repeated` rows whose score was not the same each time.
    """

    metric: str
    fingerprint: str
    rows: int
    scored: int
    unscored: dict[str, int]
    balanced_accuracy: Figure | None
    auroc: Figure | None
    kappa: Figure | None
    spearman: Figure | None
    repeated: int
    noise: Figure | None
    changed: Figure | None


@dataclass(frozen=True, slots=True)
class SetReport:
    """One set under one plan. Calls, tokens, cost and seconds are per interaction, all scorers together.

    `cost_usd` is None where a price is unknown. `seconds_*` are wall-clock, with as many rows at a time as were asked.
    """

    set: str
    task: str
    model: str
    plan: str
    threshold: float
    rows: int
    groups: int
    calls: Figure | None
    input_tokens: Figure | None
    output_tokens: Figure | None
    tokens_estimated: bool
    cost_usd: Figure | None
    seconds_median: Figure | None
    seconds_p95: Figure | None
    metrics: tuple[MetricReport, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Balanced accuracy of `fused` less that of `standard`, on the rows that both scored."""

    set: str
    metric: str
    rows: int
    difference: Figure


@dataclass(frozen=True, slots=True)
class Report:
    sets: tuple[SetReport, ...]
    comparisons: tuple[Comparison, ...]
    intervals: str = (
        "95 %; the wider end of a bootstrap of whole groups and of Jeffreys' (shares, tables) or Newcombe's (AUROC) "
        "interval; quantiles by order statistics, means by the bootstrap alone"
    )


def report(
    sets: Sequence[LabelledSet],
    trials: Sequence[Trial],
    *,
    model: str,
    threshold: float,
    lower_is_better: Collection[str] = (),
) -> Report:
    """`lower_is_better` names the metrics whose low scores mean good; they are turned before they are compared."""
    made: list[SetReport] = []
    comparisons: list[Comparison] = []
    for one in sets:
        labels = {row.interaction.id: row for row in one.rows}
        own = [each for each in trials if each.set == one.name and each.id in labels]
        plans = sorted({each.plan for each in own}, key=_PLAN_PAIR.index)
        for plan in plans:
            tried = [each for each in own if each.plan == plan]
            made.append(
                _set_report(one, labels, tried, model=model, threshold=threshold, lower_is_better=lower_is_better)
            )
        if len(plans) > 1:
            comparisons += _comparisons(one.name, labels, own, threshold, lower_is_better)
    return Report(tuple(made), tuple(comparisons))


def _set_report(
    one: LabelledSet,
    labels: dict[str, Labelled],
    tried: Sequence[Trial],
    *,
    model: str,
    threshold: float,
    lower_is_better: Collection[str],
) -> SetReport:
    first = [each for each in tried if each.attempt == 0]
    groups = [labels[each.id].group for each in first]
    costs = [each.cost_usd for each in first if each.cost_usd is not None]
    names = list(dict.fromkeys(measured.metric for each in tried for measured in each.results))
    seconds = [each.seconds for each in first]
    return SetReport(
        set=one.name,
        task=one.task,
        model=model,
        plan=tried[0].plan,
        threshold=threshold,
        rows=len(first),
        groups=len(set(groups)),
        calls=figures.mean([each.calls for each in first], groups),
        input_tokens=figures.mean([each.input_tokens for each in first], groups),
        output_tokens=figures.mean([each.output_tokens for each in first], groups),
        tokens_estimated=any(each.estimated for each in first),
        cost_usd=figures.mean(costs, groups) if len(costs) == len(first) else None,
        seconds_median=figures.quantile(seconds, 0.5),
        seconds_p95=figures.quantile(seconds, 0.95),
        metrics=tuple(
            _metric_report(name, labels, tried, threshold, turned=name in lower_is_better, graded=one.graded)
            for name in names
        ),
    )


def _scores(tried: Sequence[Trial], metric: str, *, turned: bool) -> dict[str, dict[int, float]]:
    """Scores by row and attempt."""
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for each in tried:
        for measured in each.results:
            if measured.metric == metric and measured.value is not None:
                found[each.id][each.attempt] = 1 - measured.value if turned else measured.value
    return found


def _metric_report(
    metric: str,
    labels: dict[str, Labelled],
    tried: Sequence[Trial],
    threshold: float,
    *,
    turned: bool,
    graded: bool,
) -> MetricReport:
    first = [m for each in tried if each.attempt == 0 for m in each.results if m.metric == metric]
    prints = [m.fingerprint for each in tried for m in each.results if m.metric == metric]
    found = _scores(tried, metric, turned=turned)
    ids = [row for row, scores in found.items() if 0 in scores]
    rows = Judged(
        np.array([labels[row].label for row in ids], dtype=float),
        np.array([found[row][0] for row in ids], dtype=float),
        [labels[row].group for row in ids],
    )
    agreed = None if graded or not ids else figures.agreement(rows, threshold)
    repeats = [list(scores.values()) for scores in found.values()]
    noise = figures.noise(repeats, [labels[row].group for row in found])
    return MetricReport(
        metric=metric,
        # a result that was decided without the judge (not applicable) does not name it: the longest is the whole one
        fingerprint=max(prints, key=len),
        rows=len(first),
        scored=len(ids),
        unscored=dict(Counter(f"{m.outcome}: {m.reason}" for m in first if m.outcome != SCORED).most_common()),
        balanced_accuracy=agreed[0] if agreed else None,
        auroc=agreed[1] if agreed else None,
        kappa=agreed[2] if agreed else None,
        spearman=figures.rank_correlation(rows) if graded and ids else None,
        repeated=sum(len(one) > 1 for one in repeats),
        noise=noise[0] if noise else None,
        changed=noise[1] if noise else None,
    )


def _comparisons(
    name: str,
    labels: dict[str, Labelled],
    own: Sequence[Trial],
    threshold: float,
    lower_is_better: Collection[str],
) -> list[Comparison]:
    made: list[Comparison] = []
    for metric in dict.fromkeys(measured.metric for each in own for measured in each.results):
        turned = metric in lower_is_better
        by_plan = [
            _scores([e for e in own if e.plan == plan and e.attempt == 0], metric, turned=turned)
            for plan in _PLAN_PAIR
        ]
        ids = [row for row in by_plan[0] if row in by_plan[1] and labels[row].label in (0.0, 1.0)]
        good = np.array([labels[row].label for row in ids], dtype=float)
        said = [np.array([scores[row][0] >= threshold for row in ids], dtype=float) for scores in by_plan]
        found = figures.difference(good, said[0], said[1], [labels[row].group for row in ids])
        if found is not None:
            made.append(Comparison(name, metric, len(ids), found))
    return made


def report_json(made: Report) -> dict[str, object]:
    """The report as JSON-ready values; figures are {value, low, high}."""
    return asdict(made)


def report_text(made: Report) -> str:
    """The report for a person."""
    lines: list[str] = []
    for one in made.sets:
        lines.append(
            f"{one.set} ({one.task}), {one.model}, plan {one.plan}: {one.rows} rows from {one.groups} groups; "
            f"a score of {one.threshold:g} and above says good"
        )
        for metric in one.metrics:
            lines.append(f"  {metric.metric}: {metric.scored} of {metric.rows} scored{_reasons(metric)}")
            lines += _agreement_lines(metric)
        tokens = "tokens counted by us" if one.tokens_estimated else "tokens as reported"
        lines += [
            f"  per interaction ({tokens}), all scorers together",
            f"    calls              {_shown(one.calls, 1)}",
            f"    prompt tokens      {_shown(one.input_tokens, 0)}",
            f"    completion tokens  {_shown(one.output_tokens, 0)}",
            f"    cost, US dollars   {_shown(one.cost_usd, 6, 'unknown: no price in judge.prices')}",
            f"    seconds, median    {_shown(one.seconds_median, 2)}",
            f"    seconds, 95 %      {_shown(one.seconds_p95, 2)}",
            "",
        ]
    for compared in made.comparisons:
        lines.append(
            f"{compared.set} {compared.metric}: balanced accuracy of fused less that of standard "
            f"{_shown(compared.difference, 3, sign=True)} on {compared.rows} rows"
        )
    lines.append(f"Intervals: {made.intervals}.")
    return "\n".join(lines)


def _reasons(metric: MetricReport) -> str:
    return "".join(f", {count} {reason}" for reason, count in metric.unscored.items())


def _agreement_lines(metric: MetricReport) -> list[str]:
    shown = [
        ("balanced accuracy ", metric.balanced_accuracy),
        ("AUROC             ", metric.auroc),
        ("Cohen's kappa     ", metric.kappa),
        ("Spearman's rho    ", metric.spearman),
    ]
    lines = [f"    {name} {_shown(figure, 3)}" for name, figure in shown if figure is not None]
    if not lines:
        lines = ["    no agreement: it takes scored rows of both labels"]
    if metric.noise is not None:
        lines += [
            f"    noise s_e          {_shown(metric.noise, 3)} from {metric.repeated} repeated rows",
            f"    score changed      {_shown(metric.changed, 3)} of them",
        ]
    return lines


def _shown(figure: Figure | None, digits: int, absent: str = "unknown", *, sign: bool = False) -> str:
    if figure is None:
        return absent
    form = f"{'+' if sign else ''}.{digits}f"
    low = "?" if figure.low is None else format(figure.low, form)
    high = "?" if figure.high is None else format(figure.high, form)
    return f"{figure.value:{form}} ({low} to {high})"

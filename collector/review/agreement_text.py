"""The agreement report for people, and as plain data."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from collector.review.figures import Agreement, Compared, Corrected
from collector.stats.labels import MIN_LABELS
from scorers.judge.figures import Figure

INTERVALS = (
    "95 %. Accuracy, means and shares: log-odds intervals with sessions as clusters; balanced accuracy, AUROC and "
    "kappa: the wider end of a bootstrap of whole sessions and of Jeffreys' or Newcombe's interval"
)


def report_json(report: Agreement) -> dict[str, Any]:
    """Plain data; figures are {value, low, high}."""
    return asdict(report) | {"intervals": INTERVALS, "min_labels": MIN_LABELS}


def report_text(report: Agreement, *, calibration: bool = True) -> str:
    """The report as text; `calibration` adds the curves."""
    lines = [
        f"{report.cases} cases, {report.labelled} labelled; {report.drawn} with a known probability, labelled in order "
        f"up to {report.reached_order:.0%} of the order drawn{_span(report)}"
    ]
    for metric, kinds in report.instruments.items():
        for kind, prints in kinds.items():
            if len(prints) > 1:
                lines.append(f"{metric}, {kind}: {len(prints)} versions are mixed: {', '.join(prints)}")
    for one in report.corrected:
        lines += ["", *_quality(one)]
    for row in report.compared:
        lines += ["", *_compared(row, calibration=calibration)]
    if not report.compared:
        lines += [
            "",
            "nothing to compare: no case has two of a judged score, a local score and a label of one metric",
        ]
    return "\n".join([*lines, "", f"Intervals: {INTERVALS}."])


def _span(report: Agreement) -> str:
    if report.since_unix is None or report.until_unix is None:
        return ""
    days = [datetime.fromtimestamp(at, UTC).date().isoformat() for at in (report.since_unix, report.until_unix)]
    return f", {days[0]} to {days[1]}"


def place(metric: str, segment: str) -> str:
    """The metric, with its segment where it is not all."""
    return metric if segment == "all" else f"{metric}, {segment}"


def _quality(one: Corrected) -> list[str]:
    asked = one.response
    lines = [
        f"{place(one.metric, one.segment)}: quality in people's terms, from {one.labels} labels of {asked.whole} cases "
        f"with {one.first} scores"
    ]
    if one.mean is None or one.share is None:
        lines.append(
            f"  not shown under {MIN_LABELS} labels in the order drawn: its interval would promise too much"
        )
    else:
        lines += [
            f"  mean               {shown(one.mean)}   by the {one.first} scores alone {one.first_mean:.3f}",
            f"  at {one.threshold:g} and above    {shown(one.share)}   by the {one.first} scores alone "
            f"{one.first_share:.3f}",
        ]
        if one.gain is not None:
            lines.append(f"  worth {one.gain:.1f} times as many labels without the {one.first} scores")
    lines.append(
        f"  of {asked.reached} whose turn came {asked.answered} answered ({asked.share:.0%}), {asked.skipped} skipped, "
        f"{asked.left} without a label of this metric"
    )
    if one.mean_bounds is not None and one.share_bounds is not None:
        lines.append(
            f"  whatever the missing would say: mean {_span_of(one.mean_bounds)}, share {_span_of(one.share_bounds)}"
        )
    return lines


def _span_of(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:.3f} to {bounds[1]:.3f}"


def _compared(row: Compared, *, calibration: bool) -> list[str]:
    if row.weighted:
        weights = f"weighted, effective number {row.n_eff:.0f}"
    elif row.second == "people":
        weights = "not drawn in order: without weights, and so of these cases alone"
    else:
        weights = "kept for a reason: without weights, and so of these cases alone"
    cells = row.confusion
    lines = [
        f"{place(row.metric, row.segment)}: {row.first} against {row.second}, {row.n} cases ({weights}); "
        f"{row.threshold:g} and above is good",
        f"  good and rightly so {cells.good_good:.1%}, good wrongly {cells.good_bad:.1%}, bad wrongly "
        f"{cells.bad_good:.1%}, bad and rightly so {cells.bad_bad:.1%}",
        f"  accuracy           {shown(row.accuracy)}",
    ]
    for name, figure in (
        ("balanced accuracy", row.balanced_accuracy),
        ("AUROC", row.auroc),
        ("Cohen's kappa", row.kappa),
    ):
        absent = "not known: all are good, or all bad"
        lines.append(f"  {name:18} {shown(figure) if figure is not None else absent}")
    lines.append(f"  calibration error  {row.calibration_error:.3f}")
    if row.undetermined:
        lines.append(
            f"  {row.undetermined} disagreements without a score are taken as the middle of the other side of the "
            "threshold"
        )
    if calibration:
        lines += [
            f"    scores {one.low:.1f} to {one.high:.1f}: {one.n:5} cases, mean {one.mean_score:.3f}, "
            f"{row.second} {shown(one.right)}"
            for one in row.calibration
        ]
    return lines


def shown(figure: Figure) -> str:
    """A number with its interval."""
    ends = ["?" if end is None else f"{end:.3f}" for end in (figure.low, figure.high)]
    return f"{figure.value:.3f} ({ends[0]} to {ends[1]})"


def finite(value: object) -> object:
    """JSON has no NaN: what is not known is null."""
    if isinstance(value, dict):
        return {name: finite(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

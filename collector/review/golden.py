"""The golden set scored again: what moved beyond noise, and what each case says of where it breaks."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from collector.review.case import Case
from collector.review.reference_rows import Finding, ReferenceThresholds, findings
from collector.stats.moved import Moved, holm, moved
from scorers.interaction import Interaction
from scorers.outcome import Failed, Result, Score
from scorers.scorer import Kind

FORMAT = 1
MIN_MEASURED = 0.9
"""Share of judged results that must not have failed; below it nothing is told."""
MOST_CASES = 5
"""Cases named with a metric that moved."""

Key = tuple[str, str]
"""Metric and kind."""
Tell = Callable[[Sequence[Result], bool], str]
"""The cause that results tell, by (results, nothing was retrieved)."""


class BadBaseline(Exception):
    """A file that is no baseline; the text says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One case's scores by metric and kind, one for each try; `content` is a digest of what was scored; `failed` and
    `unscored` are the metrics that failed, or were not applicable, at the first try."""

    content: str
    scores: Mapping[Key, list[float]]
    failed: tuple[Key, ...] = ()
    unscored: tuple[Key, ...] = ()


@dataclass(frozen=True, slots=True)
class Run:
    """One run over the golden set: cases by id, and the instruments' fingerprints."""

    cases: Mapping[str, Scored]
    instruments: Mapping[Key, str]


def content_of(interaction: Interaction) -> str:
    """A digest of all that scorers see."""
    seen = [
        interaction.question,
        None if interaction.contexts is None else [passage.text for passage in interaction.contexts],
        interaction.response,
        interaction.reference,
        [[turn.role, turn.text] for turn in interaction.history],
    ]
    return hashlib.blake2b(json.dumps(seen).encode(), digest_size=12).hexdigest()


def scored(interaction: Interaction, results: Sequence[Result]) -> tuple[Scored, dict[Key, str]]:
    """What one case's results, all tries together, say; and their fingerprints."""
    scores: dict[Key, list[float]] = {}
    failed: list[Key] = []
    unscored: list[Key] = []
    instruments: dict[Key, str] = {}
    for one in results:
        key = (one.scorer, str(one.kind))
        if isinstance(one.outcome, Score):
            scores.setdefault(key, []).append(one.outcome.value)
            instruments[key] = one.fingerprint
        elif not one.attempt:
            (failed if isinstance(one.outcome, Failed) else unscored).append(key)
    return Scored(content_of(interaction), scores, tuple(failed), tuple(unscored)), instruments


def kept(cases: Sequence[tuple[Case, Interaction]]) -> Run:
    """The run that the cases themselves hold: the scores that they came with. Of local ones the fast tier's; repeats
    of the same instrument are further tries. With a reference that people gave later, scores that do not use it
    stand."""
    made: dict[str, Scored] = {}
    instruments: dict[Key, str] = {}
    for case, interaction in cases:
        scores: dict[Key, list[float]] = {}
        prints: dict[Key, str] = {}
        for one in sorted(case.results, key=lambda one: one.attempt):
            key = (one.metric, one.kind)
            if (
                one.score is None
                or one.tier == "full"
                or prints.setdefault(key, one.fingerprint) != one.fingerprint
            ):
                continue
            scores.setdefault(key, []).append(one.score)
        instruments |= prints
        made[case.id] = Scored(content_of(interaction), scores)
    return Run(made, instruments)


def save(run: Run, path: Path) -> None:
    """Write a run as a baseline for the next."""
    body = {
        "format": FORMAT,
        "instruments": {"/".join(key): name for key, name in sorted(run.instruments.items())},
        "cases": {
            case_id: {
                "content": one.content,
                "scores": {"/".join(key): values for key, values in sorted(one.scores.items())},
            }
            for case_id, one in sorted(run.cases.items())
        },
    }
    path.write_text(json.dumps(body, indent=1) + "\n", "utf-8")


def load(path: Path) -> Run:
    """Read a baseline. Raises BadBaseline, OSError."""
    try:
        body = json.loads(path.read_bytes())
        if body["format"] != FORMAT:
            raise BadBaseline(
                f"{path}: a baseline of form {body['format']!r:.40}, not {FORMAT}; make it anew with --save"
            )
        cases = {
            str(case_id): Scored(
                str(one["content"]),
                {
                    _key(key): msgspec.convert(values, list[float])
                    for key, values in one["scores"].items()
                    if values
                },
            )
            for case_id, one in body["cases"].items()
        }
        return Run(cases, {_key(key): str(name) for key, name in body["instruments"].items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadBaseline(
            f"{path}: no baseline of regress ({type(error).__name__}); make one with `groundwatch regress --save FILE`"
        ) from error


def _key(text: str) -> Key:
    metric, _, kind = text.rpartition("/")
    return metric, kind


@dataclass(frozen=True, slots=True)
class MovedCase:
    case_id: str
    before: float
    after: float
    beyond_noise: bool


@dataclass(frozen=True, slots=True)
class Change:
    """One metric over the cases that have it in both runs. `adjusted` is p after Holm over all metrics; `verdict` is
    better, worse or unmoved. `lost` are cases that had a score and now have none, `gained` the other way round;
    `cases` are those that moved most."""

    metric: str
    kind: str
    moved: Moved
    adjusted: float
    verdict: str
    lost: int
    gained: int
    instrument_before: str
    instrument_after: str
    cases: tuple[MovedCase, ...]


@dataclass(frozen=True, slots=True)
class CaseReport:
    """What one case says: the cause by its scores then and now, and what its reference tells now."""

    case_id: str
    title: str
    cause: str
    findings: tuple[Finding, ...]
    scores: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Regression:
    """The report. `left_out` are cases whose content is another than the baseline's, `new` those that it does not
    have. `measured` is the share of judged results that did not fail; None without a judge. `findings` are shares
    among `told` cases that can tell, by row."""

    cases: int
    new: int
    left_out: int
    measured: float | None
    alpha: float
    least: float
    changes: tuple[Change, ...]
    causes: Mapping[str, int]
    findings: Mapping[Finding, int]
    told: Mapping[Finding, int]
    reports: tuple[CaseReport, ...]
    cost_usd: float | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def trusted(self) -> bool:
        return self.measured is None or self.measured >= MIN_MEASURED

    @property
    def worse(self) -> bool:
        return any(change.verdict == "worse" for change in self.changes)


def compare(
    before: Run, after: Run, *, lower_is_better: Mapping[Key, bool], alpha: float, least: float
) -> tuple[tuple[Change, ...], int, int]:
    """Every metric that both runs have, and how many cases are new, and left out for other content.

    A metric moved when its adjusted p is under `alpha` and its mean by at least `least`.
    """
    common = [case_id for case_id in after.cases if case_id in before.cases]
    same = [one for one in common if before.cases[one].content == after.cases[one].content]
    keys = sorted({key for one in same for key in before.cases[one].scores} & _scored_keys(after, same))
    results: list[tuple[Key, Moved, list[str]]] = []
    for key in keys:
        ids = [one for one in same if key in before.cases[one].scores and key in after.cases[one].scores]
        if ids:
            was = [before.cases[one].scores[key] for one in ids]
            now = [after.cases[one].scores[key] for one in ids]
            results.append((key, moved(was, now, noisy=key[1] == Kind.JUDGED, alpha=alpha), ids))
    adjusted = holm([found.p for _, found, _ in results])
    changes = tuple(
        _change(
            key,
            found,
            adjusted=p,
            before=before,
            after=after,
            ids=ids,
            same=same,
            lower=lower_is_better.get(key, False),
            alpha=alpha,
            least=least,
        )
        for (key, found, ids), p in zip(results, adjusted, strict=True)
    )
    return changes, len(after.cases) - len(common), len(common) - len(same)


def _scored_keys(run: Run, ids: Sequence[str]) -> set[Key]:
    return {key for one in ids for key in run.cases[one].scores}


def _change(
    key: Key,
    found: Moved,
    *,
    adjusted: float,
    before: Run,
    after: Run,
    ids: Sequence[str],
    same: Sequence[str],
    lower: bool,
    alpha: float,
    least: float,
) -> Change:
    verdict = "unmoved"
    if adjusted < alpha and abs(found.difference) >= least:
        verdict = "worse" if (found.difference > 0) == lower else "better"
    pairs = [(one, _mean(before.cases[one].scores[key]), _mean(after.cases[one].scores[key])) for one in ids]
    pairs.sort(key=lambda pair: -abs(pair[2] - pair[1]))
    limit = found.case_limit
    cases = tuple(
        MovedCase(one, was, now, limit is not None and abs(now - was) > limit)
        for one, was, now in pairs[:MOST_CASES]
        if now != was
    )
    return Change(
        key[0],
        key[1],
        found,
        adjusted,
        verdict,
        lost=sum(key in before.cases[one].scores and key not in after.cases[one].scores for one in same),
        gained=sum(key not in before.cases[one].scores and key in after.cases[one].scores for one in same),
        instrument_before=before.instruments.get(key, ""),
        instrument_after=after.instruments.get(key, ""),
        cases=cases,
    )


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def told(
    run: Run,
    cases: Sequence[tuple[Case, Interaction]],
    causes: Mapping[str, str],
    thresholds: ReferenceThresholds,
) -> tuple[tuple[CaseReport, ...], Counter[Finding], Counter[Finding]]:
    """A report for each case; how many cases each row holds of, and how many could tell. `causes` are by case id."""
    holds: Counter[Finding] = Counter()
    known: Counter[Finding] = Counter()
    reports: list[CaseReport] = []
    for case, interaction in cases:
        one = run.cases[case.id]
        judged = {metric: _mean(values) for (metric, kind), values in one.scores.items() if kind == Kind.JUDGED}
        local = {metric: _mean(values) for (metric, kind), values in one.scores.items() if kind != Kind.JUDGED}
        rows = findings(judged, thresholds)
        known.update(list(rows))
        holds.update(row for row, true in rows.items() if true)
        title = " ".join((interaction.question or interaction.response or "").split())[:80]
        true_rows = tuple(row for row, true in rows.items() if true)
        reports.append(CaseReport(case.id, title, causes[case.id], true_rows, local | judged))
    return tuple(reports), holds, known


def report_json(report: Regression) -> dict[str, Any]:
    return asdict(report) | {"trusted": report.trusted, "worse": report.worse}


def report_text(report: Regression) -> str:
    """The report for people: what moved, then shares, then cases."""
    lines = [f"{report.cases} golden cases"]
    if report.new or report.left_out:
        lines.append(
            f"{report.new} are not in the baseline, {report.left_out} have other content than there: not compared"
        )
    lines += report.notes
    if not report.trusted and report.measured is not None:
        lines.append(
            f"only {report.measured:.0%} of the judged results could be measured: nothing is told of what moved; see "
            "`groundwatch check --judge`"
        )
    lines += ["", f"{'metric':30} {'kind':7} {'cases':>5} {'before':>7} {'after':>7} {'difference':>28} {'p':>7}"]
    for change in report.changes:
        lines += _change_lines(change)
    if not report.changes:
        lines.append("  nothing to compare: no metric has scores in both runs")
    lines += ["", "Where it breaks now: " + _listed(report.causes, report.cases)]
    if report.told:
        rows = {str(row): (report.findings.get(row, 0), count) for row, count in report.told.items()}
        shares = ", ".join(f"{name} {count} of {of}" for name, (count, of) in rows.items())
        lines.append(f"By references: {shares}")
        lines += [
            f"  {one.case_id}: {', '.join(one.findings)}: {one.title}" for one in report.reports if one.findings
        ]
    cost = "" if report.cost_usd is None else f"; judging cost {report.cost_usd:.4f} USD"
    verdict = "something got worse beyond noise" if report.worse else "nothing got worse beyond noise"
    lines += ["", f"{verdict if report.trusted else 'not measured'}{cost}"]
    return "\n".join(lines)


def _listed(counts: Mapping[str, int], total: int) -> str:
    return ", ".join(f"{name} {count} ({count / total:.0%})" for name, count in counts.items()) if total else "-"


def _change_lines(change: Change) -> list[str]:
    found = change.moved
    interval = f"{found.difference:+.3f} ({found.low:+.3f} to {found.high:+.3f})"
    lines = [
        f"{change.metric:30} {change.kind:7} {found.n:5} {found.before:7.3f} {found.after:7.3f} {interval:>28} "
        f"{change.adjusted:7.3g}  {change.verdict}"
    ]
    if change.instrument_before != change.instrument_after:
        lines.append(f"    measured by {change.instrument_after}, before by {change.instrument_before}")
    if found.by == "signs":
        lines.append("    noise is not known (no repeats): judged by the signs of the differences alone")
    elif found.noise_sd:
        lines.append(f"    noise s_e {found.noise_sd:.3f}")
    if change.lost or change.gained:
        lines.append(f"    {change.lost} cases lost their score, {change.gained} gained one")
    if change.verdict != "unmoved":
        lines += [
            f"    {one.case_id}: {one.before:.3f} to {one.after:.3f}"
            f"{', beyond noise by itself' if one.beyond_noise else ''}"
            for one in change.cases
        ]
    return lines

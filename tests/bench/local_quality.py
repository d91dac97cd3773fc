"""How well the local scorers agree with people: AUROC, balanced accuracy and floors, by set and tier.

    python -m tests.bench.local_quality [--data DIR] [--tier fast|full|both] [--cross] [--markdown]
    python -m tests.bench.local_quality --quick

Rows are scored by the scorers as users run them, with the shipped table. `--cross` refits the models on the same
directory and reports held-out documents and held-out sets instead: what the floors are about, since the shipped
table was fitted on rows of these sets. `--quick` uses the excerpts in `tests/data/eval` and lower floors. Exits 1
when a floor does not hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import numpy as np

from scorers.interaction import Interaction
from scorers.local import build
from scorers.local.calibration import refit, report_text
from scorers.local.encoder import Encoder, ModelMissing
from scorers.local.engine import Engine
from scorers.local.fitting import Floats, auroc, auroc_interval, balanced_accuracy, spearman
from scorers.local.labelled import LabelledSet, read_set
from scorers.local.planted import donor_of
from scorers.outcome import Score
from scorers.scorer import LocalScorer, Tier

EXCERPTS = Path(__file__).parents[1] / "data" / "eval"
SCORERS_OF_TASK = {
    "groundedness": ("groundedness", "faithfulness"),
    "context_relevance": ("context_relevance",),
    "response_relevancy": ("response_relevancy",),
}


@dataclass(frozen=True, slots=True)
class Floor:
    """The least that `measure` of a set may be. `fast` is None where only the full tier is held to it."""

    full: float
    fast: float | None
    quick: float


FLOORS = {
    ("begin_wow", "own"): Floor(0.91, 0.91, 0.88),
    ("begin_cmu", "own"): Floor(0.92, 0.92, 0.90),
    ("begin_tc", "own"): Floor(0.87, 0.87, 0.85),
    ("begin_wow", "swapped"): Floor(0.97, 0.97, 0.95),
    ("fm2", "swapped"): Floor(0.97, 0.97, 0.95),
    ("summedits_sales_email", "swapped"): Floor(0.97, 0.97, 0.95),
    ("selqa", "own"): Floor(0.91, 0.91, 0.88),
    ("xquad_en", "own"): Floor(0.95, 0.95, 0.93),
    ("clapnq", "own"): Floor(0.86, None, 0.80),
    ("clapnq_resp", "own"): Floor(0.94, None, 0.85),
    ("topicalchat", "own"): Floor(0.40, None, 0.30),
}
"""`clapnq`, `clapnq_resp` and `topicalchat` need the encoder: the fast tier is below these three floors."""


@dataclass(frozen=True, slots=True)
class Row:
    """One measured line: `which` is `own` labels or `swapped` contexts."""

    tier: str
    scorer: str
    set: str
    which: str
    rows: int
    unscored: int
    measure: str
    value: float
    low: float
    high: float
    balanced: float


def _values(scorer: LocalScorer, interactions: Sequence[Interaction]) -> list[float | None]:
    found: list[float | None] = []
    for start in range(0, len(interactions), 64):
        for (result,) in scorer.score(interactions[start : start + 64]):
            found.append(result.outcome.value if isinstance(result.outcome, Score) else None)
    return found


def _row(
    tier: Tier, scorer: str, name: str, which: str, labels: Sequence[float], values: list[float | None]
) -> Row:
    kept = [(label, value) for label, value in zip(labels, values, strict=True) if value is not None]
    want: Floats = np.array([label for label, _ in kept])
    got: Floats = np.array([value for _, value in kept])
    graded = bool(((want > 0) & (want < 1)).any())
    low, high = (float("nan"), float("nan")) if graded else auroc_interval(want, got)
    return Row(
        str(tier),
        scorer,
        name,
        which,
        len(kept),
        len(values) - len(kept),
        "spearman" if graded else "auroc",
        spearman(want, got) if graded else auroc(want, got),
        low,
        high,
        balanced_accuracy(want, got),
    )


def swaps(one: LabelledSet) -> tuple[list[Interaction], list[float]]:
    """Supported responses with their own contexts (1) and with another document's (0)."""
    good = [row for row in one.rows if row.label == 1.0]
    own = [row.interaction for row in good]
    groups = [row.group for row in good]
    pairs = [(one, donor_of(own, groups, place)) for place, one in enumerate(own)]
    wrong = [replace(one, contexts=donor.contexts) for one, donor in pairs if donor is not None]
    return [*own, *wrong], [1.0] * len(own) + [0.0] * len(wrong)


def measure(sets: Sequence[LabelledSet], tier: Tier) -> list[Row]:
    """Every set by the scorers of its task, and swapped contexts for groundedness sets."""
    rows: list[Row] = []
    names = [name for listed in SCORERS_OF_TASK.values() for name in listed]
    scorers = dict(zip(names, build(names, tier, threads=2), strict=True))
    for one in sets:
        for name in SCORERS_OF_TASK[one.task]:
            scorer = scorers[name]
            values = _values(scorer, [row.interaction for row in one.rows])
            rows.append(_row(tier, name, one.name, "own", [row.label for row in one.rows], values))
            if one.task == "groundedness":
                interactions, labels = swaps(one)
                rows.append(_row(tier, name, one.name, "swapped", labels, _values(scorer, interactions)))
    return rows


def below(name: str, which: str, tier: str, value: float, *, quick: bool) -> str | None:
    """The sentence that says that a floor does not hold, or None."""
    floor = FLOORS.get((name, which))
    if floor is None:
        return None
    least = floor.full if tier == Tier.FULL else floor.fast
    if quick:
        least = None if least is None else floor.quick
    if least is None or value >= least:
        return None
    return f"{name} ({which}, {tier}): {value:.3f} is below the floor {least:.2f}"


def print_rows(rows: Sequence[Row], *, markdown: bool) -> None:
    if markdown:
        print("| scorer | tier | set | rows | AUROC (95 %) | BA at 0.5 |\n|---|---|---|---|---|---|")
    for row in rows:
        name = row.set if row.which == "own" else f"{row.set}, swapped contexts"
        interval = "" if np.isnan(row.low) else f" ({row.low:.2f} to {row.high:.2f})"
        if markdown:
            value = f"{row.value:.3f}{interval}" if row.measure == "auroc" else f"Spearman {row.value:.2f}"
            balanced = "" if np.isnan(row.balanced) else f"{row.balanced:.2f}"
            print(f"| {row.scorer} | {row.tier} | {name} | {row.rows} | {value} | {balanced} |")
        else:
            print(
                f"{row.tier:5} {row.scorer:20} {name:42} {row.rows:5} {row.unscored:4} unscored  "
                f"{row.measure} {row.value:.3f}{interval}  BA {row.balanced:.2f}"
            )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="directory of labelled JSON Lines (default: the excerpts)")
    parser.add_argument("--tier", choices=("fast", "full", "both"), default="both")
    parser.add_argument("--quick", action="store_true", help="the excerpts, with lower floors, for every commit")
    parser.add_argument("--cross", action="store_true", help="refit, and report held-out documents and sets")
    parser.add_argument("--markdown", action="store_true", help="print the rows as a Markdown table")
    args = parser.parse_args(argv)
    quick = args.quick or args.data is None
    about = json.loads(resources.files("scorers.local").joinpath("data/sets.json").read_text("utf-8"))
    sets = [read_set(path, about) for path in sorted((args.data or EXCERPTS).glob("*.jsonl"))]
    complaints: list[str | None] = []
    for tier in (Tier.FAST, Tier.FULL):
        if args.tier not in (tier, "both"):
            continue
        try:
            encoder = Encoder(threads=2) if tier is Tier.FULL else None
        except ModelMissing as error:
            print(f"full tier left out: {error}")
            continue
        if args.cross:
            _, reports = refit(Engine(None, tier=tier, encoder=encoder), sets)
            print(report_text(reports))
            for one in reports:
                complaints.append(below(one.name, "own", one.tier, one.held_out_documents, quick=quick))
                if one.swapped is not None:
                    complaints.append(below(one.name, "swapped", one.tier, one.swapped, quick=quick))
        else:
            rows = measure(sets, tier)
            print_rows(rows, markdown=args.markdown)
            complaints += [below(row.set, row.which, row.tier, row.value, quick=quick) for row in rows]
    broken = [complaint for complaint in complaints if complaint is not None]
    for complaint in broken:
        print(f"FLOOR {complaint}")
    print("all floors hold" if not broken else f"{len(broken)} floors do not hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

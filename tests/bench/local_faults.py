"""What local scorers notice of faults planted in clean rows by code, and how often they cry wolf.

    python -m tests.bench.local_faults [--data DIR] [--tier fast|full] [--markdown]
    python -m tests.bench.local_faults --quick

Clean rows are supported responses: English from BEGIN and CLAPnq, Korean from KLUE-NLI and XNLI. Per language and
kind: how many were planted, the share that was flagged (a sentence judged unsupported, or a number, unit, name or
denial that the contexts do not have), the share of the same rows flagged when clean, and how often the score of the
faulty row is below that of its clean one (0.5 a tie). Swaps, emptied contexts and refusals are noticed by the score,
the code's rule and the refusal rule. Exits 1 when numbers, units or names are not flagged far above the clean rate.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from scorers.interaction import Interaction
from scorers.local import build
from scorers.local.labelled import Labelled, read_set
from scorers.local.planted import PLANTERS, donor_of
from scorers.outcome import Label, NotApplicable, NotApplicableReason, Result, Score
from scorers.scorer import LocalScorer, Tier
from tests.bench.local_quality import EXCERPTS

CLEAN = {"en": ("begin_wow", "begin_cmu", "clapnq_resp"), "ko": ("klue_nli", "xnli_ko")}
FAR_ABOVE = 0.3
"""Numbers, units and names must be flagged at least this much more often than the same rows when clean."""
SEEN_BY_MISMATCH = ("number", "unit", "name")


@dataclass(frozen=True, slots=True)
class Line:
    language: str
    kind: str
    planted: int
    flagged: float
    false_alarms: float
    lower: float


def flagged(result: Result) -> bool:
    """Whether a person who looks at this result is shown a problem."""
    if isinstance(result.outcome, NotApplicable):
        return result.outcome.reason is NotApplicableReason.REFUSAL
    if isinstance(result.outcome, Score) and result.outcome.label == "no_contexts":
        return True
    if any(verdict.label is Label.UNSUPPORTED for verdict in result.verdicts):
        return True
    sentences = result.evidence.get("sentences", ())
    assert isinstance(sentences, list)
    return any(
        sentence.get("denial_differs") or set(sentence["missing"]) & {"numbers", "units", "names"}
        for sentence in sentences
    )


def _value(result: Result) -> float:
    return result.outcome.value if isinstance(result.outcome, Score) else -1.0


def _score(scorer: LocalScorer, interactions: Sequence[Interaction]) -> list[Result]:
    found: list[Result] = []
    for start in range(0, len(interactions), 64):
        found.extend(result for (result,) in scorer.score(interactions[start : start + 64]))
    return found


def plant(rows: Sequence[Labelled], kind: str) -> tuple[list[Interaction], list[Interaction]]:
    """The clean rows that have a place for the fault, and the same with it."""
    clean = [row.interaction for row in rows]
    groups = [row.group for row in rows]
    rng = random.Random(11)
    pairs: list[tuple[Interaction, Interaction]] = []
    for place, one in enumerate(clean):
        donor = donor_of(clean, groups, place)
        faulty = None if donor is None else PLANTERS[kind](one, donor, rng)
        if faulty is not None:
            pairs.append((one, faulty))
    return [one for one, _ in pairs], [faulty for _, faulty in pairs]


def measure(data: Path, tier: Tier) -> list[Line]:
    about = json.loads(resources.files("scorers.local").joinpath("data/sets.json").read_text("utf-8"))
    (scorer,) = build(["faithfulness"], tier, threads=2)
    lines: list[Line] = []
    for language, names in CLEAN.items():
        sets = [read_set(data / f"{name}.jsonl", about) for name in names]
        rows = [row for one in sets for row in one.rows if row.label == 1.0 and row.interaction.contexts]
        rows = [row for row, result in zip(rows, _score(scorer, [r.interaction for r in rows]), strict=True)
                if isinstance(result.outcome, Score)]  # a clean row must be scored  # fmt: skip
        for kind in PLANTERS:
            clean, faulty = plant(rows, kind)
            if not clean:
                continue
            before, after = _score(scorer, clean), _score(scorer, faulty)
            lower = [
                1.0 if _value(b) > _value(a) else 0.5 if _value(b) == _value(a) else 0.0
                for b, a in zip(before, after, strict=True)
            ]
            lines.append(
                Line(
                    language,
                    kind,
                    len(clean),
                    sum(map(flagged, after)) / len(after),
                    sum(map(flagged, before)) / len(before),
                    sum(lower) / len(lower),
                )
            )
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=EXCERPTS, help="directory of labelled JSON Lines")
    parser.add_argument("--tier", choices=("fast", "full"), default="fast")
    parser.add_argument("--quick", action="store_true", help="the excerpts, fast tier")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    args = parser.parse_args(argv)
    lines = measure(EXCERPTS if args.quick else args.data, Tier(args.tier))
    print(
        "| language | fault | planted | flagged | the same rows clean | score lower |\n|---|---|---|---|---|---|"
        if args.markdown
        else "lang kind       planted flagged clean lower"
    )
    for line in lines:
        if args.markdown:
            print(
                f"| {line.language} | {line.kind} | {line.planted} | {line.flagged:.2f} | {line.false_alarms:.2f} | "
                f"{line.lower:.2f} |"
            )
        else:
            print(
                f"{line.language:4} {line.kind:10} {line.planted:7} {line.flagged:7.2f} {line.false_alarms:5.2f} "
                f"{line.lower:5.2f}"
            )
    blind = [
        line
        for line in lines
        if line.kind in SEEN_BY_MISMATCH
        and (line.language, line.kind) != ("ko", "name")  # Korean has no capitals: a name is a word like another
        and line.planted >= 5
        and line.flagged < line.false_alarms + FAR_ABOVE
    ]
    for line in blind:
        print(f"FLOOR {line.language} {line.kind}: flagged {line.flagged:.2f}, clean {line.false_alarms:.2f}")
    return 1 if blind else 0


if __name__ == "__main__":
    sys.exit(main())

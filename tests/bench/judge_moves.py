"""Does every metric move when what it measures is spoilt? For any endpoint.

    python -m tests.bench.judge_moves --base-url http://127.0.0.1:8081/v1 --model NAME [--embeddings-url URL]

Good answers are judged as they are and with one part spoilt: contexts emptied, contexts swapped with another item's,
question swapped. Printed are the means before and after over the items scored both times, and how many fell.
`response_relevancy` needs an embeddings endpoint; `answer_grade` stands beside it for judges without.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from scorers.interaction import Interaction
from scorers.outcome import Score
from tests.support.judge_items import a_judge, add_judge_arguments, count, good

Spoil = Callable[[Interaction, Interaction], Interaction]


@dataclass(frozen=True, slots=True)
class Spoiling:
    """One way to spoil an item with another one, and the metrics that must fall."""

    name: str
    spoil: Spoil
    falls: tuple[str, ...]


SPOILINGS = (
    Spoiling(
        "contexts swapped",
        lambda one, other: replace(one, contexts=other.contexts),
        ("faithfulness", "groundedness", "context_relevance"),
    ),
    Spoiling(
        "contexts emptied",
        lambda one, _: replace(one, contexts=()),
        ("faithfulness", "groundedness", "context_relevance"),
    ),
    Spoiling(
        "question swapped",
        lambda one, other: replace(one, question=other.question),
        ("answer_grade", "context_relevance", "response_relevancy"),
    ),
)


async def _measure(args: argparse.Namespace) -> None:
    items = min(2 if args.quick else args.items, count())
    moved: dict[tuple[str, str], list[tuple[float, float]]] = {}
    async with a_judge(args, args.scorers.split(",")) as judge:
        names = {metric.metric for metric in judge.metrics}

        async def scores(interaction: Interaction) -> dict[str, float]:
            results = await judge.score(interaction)
            return {one.scorer: one.outcome.value for one in results if isinstance(one.outcome, Score)}

        for number in range(items):
            one, other = good(number), good(number + 1)
            before = await scores(one)
            print(f"item {number}: {before}", flush=True)
            for spoiling in SPOILINGS:
                after = await scores(spoiling.spoil(one, other))
                print(f"  {spoiling.name}: {after}", flush=True)
                for metric in spoiling.falls:
                    if metric in before and metric in after:
                        moved.setdefault((spoiling.name, metric), []).append((before[metric], after[metric]))
    print(f"{args.model}, plan {args.plan}, {items} items")
    for spoiling in SPOILINGS:
        for metric in spoiling.falls:
            pairs = np.array(moved.get((spoiling.name, metric), [])).reshape(-1, 2)
            if metric in names and len(pairs):
                fell = int((pairs[:, 1] < pairs[:, 0]).sum())
                means = pairs.mean(axis=0)
                print(
                    f"  {spoiling.name}: {metric} {means[0]:.2f} -> {means[1]:.2f}; fell on {fell} of {len(pairs)}"
                )
            elif metric in names:
                print(f"  {spoiling.name}: {metric} was scored both times on no item")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_judge_arguments(parser)
    parser.add_argument("--items", type=int, default=6, help="items, at most 6")
    parser.add_argument("--scorers", default="faithfulness,groundedness,context_relevance,answer_grade")
    asyncio.run(_measure(parser.parse_args(argv)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

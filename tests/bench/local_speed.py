"""Speed of the local scorers: interactions a second on one core, cold and warm passage cache, memory, start.

    python -m tests.bench.local_speed [--tier fast|full|both] [--interactions N] [--quick]

Interactions have five passages of 128 words from the excerpts and a response of four sentences. *cold*: every passage
is new. *warm*: every passage was seen before (as when passages repeat ten times and more). CPU time is counted, not
wall time, so that a busy machine does not change the figures much. The baseline, in the same run, splits the same
texts into words and intersects the sets: the least that any lexical score does. *two processes* is wall time of two
workers beside one.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

from scorers.interaction import Interaction, Passage
from scorers.local import DEFAULT, build
from scorers.local.encoder import ModelMissing
from scorers.run import run_local
from scorers.scorer import LocalScorer, Tier
from tests.bench.local_quality import EXCERPTS

PASSAGES, WORDS, BATCH = 5, 128, 16


def interactions(count: int, seed: int = 1) -> list[Interaction]:
    """`count` interactions in which no passage repeats."""
    rng = random.Random(seed)
    rows = [
        json.loads(line)
        for name in ("xquad_en", "clapnq")
        for line in (EXCERPTS / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    sentences = [s for row in rows for s in re.split(r"(?<=[.!?])\s+", row["contexts"][0]) if len(s.split()) >= 6]
    made: list[Interaction] = []
    for number in range(count):
        passages: list[str] = []
        for _ in range(PASSAGES):
            words: list[str] = []
            while len(words) < WORDS:
                words += rng.choice(sentences).split()
            passages.append(" ".join(words[:WORDS]))
        response = " ".join(" ".join(passage.split()[:16]).rstrip(".") + "." for passage in passages[:4])
        made.append(
            Interaction(str(number), rng.choice(rows)["question"], tuple(map(Passage, passages)), response)
        )
    return made


def per_second(work: Callable[[Sequence[Interaction]], object], batch: Sequence[Interaction]) -> float:
    """Interactions a second of CPU time."""
    started = time.process_time()
    for start in range(0, len(batch), BATCH):
        work(batch[start : start + BATCH])
    return len(batch) / (time.process_time() - started)


def baseline(batch: Sequence[Interaction]) -> int:
    """Words of contexts and response, intersected."""
    shared = 0
    for one in batch:
        spoken = set(re.findall(r"\w+", (one.response or "").lower()))
        for passage in one.contexts or ():
            shared += len(spoken.intersection(re.findall(r"\w+", passage.text.lower())))
    return shared


def fresh(batch: Sequence[Interaction]) -> list[Interaction]:
    """The same texts as new objects with new responses, so that only passages are known."""
    return [replace(one, id=f"again-{one.id}", response=f"Indeed. {one.response}") for one in batch]


def scoring(scorers: Sequence[LocalScorer]) -> Callable[[Sequence[Interaction]], object]:
    return functools.partial(run_local, list(scorers))


def in_worker(tier: str, count: int, seed: int) -> tuple[float, float]:
    """Wall-clock start and end of scoring in a worker process, after its scorers are built."""
    work = scoring(build(DEFAULT, tier))
    batch = interactions(count, seed)
    work(batch[:1])
    started = time.time()
    for start in range(0, len(batch), BATCH):
        work(batch[start : start + BATCH])
    return started, time.time()


def processes(tier: str, count: int, workers: int) -> float:
    """Interactions a second of wall time on `workers` processes."""
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        runs = [pool.submit(in_worker, tier, count, seed) for seed in range(workers)]
        spans = [run.result() for run in runs]
    return workers * count / (max(end for _, end in spans) - min(start for start, _ in spans))


def start_time(tier: str) -> tuple[float, float]:
    """Seconds of CPU to import and build, and resident megabytes after the first interaction."""
    program = (
        "import resource\n"
        "from scorers.local import build\n"
        "from scorers.interaction import Interaction, Passage\n"
        f"scorers = build(tier={tier!r})\n"
        "scorers[0].score([Interaction('1', 'What?', (Passage('A text.'),), 'A text.')])\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)\n"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    cpu, memory = printed.split()
    return float(cpu), float(memory)


def report(tier: Tier, count: int, *, quick: bool) -> None:
    batch = interactions(count)
    floor = per_second(baseline, batch)
    scorers = build(DEFAULT, tier)
    scoring(scorers)(interactions(2, seed=99))
    cold = per_second(scoring(scorers), batch)
    warm = per_second(scoring(scorers), fresh(batch))
    cpu, memory = start_time(str(tier))
    print(
        f"{tier}: cold {cold:.1f}/s, warm {warm:.1f}/s ({warm / cold:.1f} times cold); baseline {floor:.0f}/s, "
        f"cold costs {floor / cold:.0f} times the baseline"
    )
    print(f"{tier}: start {cpu:.2f} s of CPU, {memory:.0f} MB resident")
    if not quick:
        one, two = processes(str(tier), count, 1), processes(str(tier), count, 2)
        print(
            f"{tier}: one process {one:.1f}/s, two processes {two:.1f}/s ({two / one:.2f} times), wall time, cold"
        )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tier", choices=("fast", "full", "both"), default="both")
    parser.add_argument("--interactions", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="few interactions, one process")
    args = parser.parse_args(argv)
    for tier in (Tier.FAST, Tier.FULL):
        if args.tier not in (tier, "both"):
            continue
        count = args.interactions if tier is Tier.FAST else max(10, args.interactions // 10)
        try:
            report(tier, min(count, 20) if args.quick else count, quick=args.quick)
        except ModelMissing as error:
            print(f"full: left out: {error}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak resident memory of this process {peak:.0f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())

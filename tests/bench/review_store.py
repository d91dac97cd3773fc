"""A review store with 100,000 cases: how long the pages' questions take, and what writing costs ingest.

    python -m tests.bench.review_store [--cases N] [--quick]

Fills a store in a temporary directory, then asks what the pages ask: each question some times, the median and the
slowest in milliseconds (aim: under 100), and the median as a multiple of reading one case by its id. Then the fast
local scorers run over interactions as ingest does, without a store, with a store whose picker keeps what it keeps by
default, and with one that keeps every interaction: processor time of the thread that ingests, and wall time, as ratios
to the first.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

from collector.pipeline.clock import SystemClock
from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause
from collector.records.found import Found
from collector.records.settled import Settled
from collector.review.build import Builder
from collector.review.case import Case, Reason
from collector.review.options import ControlOptions, Options, PickOptions
from collector.review.picker import Picker
from collector.review.query import Query, Sort, Subject, SubjectKind
from collector.review.sqlite import SqliteStore
from collector.sampling.hashing import Uniform
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Passage
from scorers.local import build
from scorers.run import run_local
from scorers.scorer import Tier
from tests.bench.local_speed import interactions
from tests.support.review_cases import NOON, a_case

METRICS = ("faithfulness", "groundedness", "context_relevance", "response_relevancy")
CAUSES = tuple(Cause)


def cases(count: int, dice: random.Random) -> Iterator[Case]:
    """Cases with about 4 KB of texts of some thousand words, of one month, ten services and forty versions."""
    words = [f"word{number}" for number in range(5_000)]
    weights = [1 / (number + 1) for number in range(len(words))]
    texts = [" ".join(dice.choices(words, weights, k=120)) for _ in range(2_000)]
    for number in range(count):
        made = a_case(
            f"{dice.getrandbits(128):032x}",
            question=dice.choice(texts)[:120],
            response=dice.choice(texts),
            scores={metric: dice.random() for metric in METRICS},
            local={metric: dice.random() for metric in METRICS},
            cause=dice.choice(CAUSES),
            reasons=(Reason.CONTROL, Reason.LOW_SCORE) if number % 4 == 0 else (Reason.LOW_SCORE,),
            order=dice.random(),
            service=f"service-{dice.randrange(10)}",
            service_version=f"1.{dice.randrange(40)}",
            session=f"session-{dice.randrange(20_000)}",
            user=f"user-{dice.randrange(5_000)}",
            trace_ids=(f"{dice.getrandbits(128):032x}",),
            segments={"tier": dice.choice(("free", "gold")), "language": dice.choice(("en", "de", "zh"))},
            ended_unix=NOON + dice.random() * 30 * 86_400,
        )
        contexts = tuple(Passage(dice.choice(texts), id=f"doc-{rank}") for rank in range(4))
        yield replace(made, interaction=replace(made.interaction, contexts=contexts))


QUESTIONS: dict[str, Query] = {
    "queue, newest": Query(),
    "queue, lowest": Query(sort=Sort.LOWEST),
    "queue, in the order drawn": Query(sort=Sort.DRAWN, labelled=False),
    "a metric under 0.3": Query(metric="faithfulness", score_max=0.3, sort=Sort.LOWEST),
    "a service and a cause": Query(service="service-3", cause="unsupported"),
    "a segment and a reason": Query(segments={"tier": "gold", "language": "zh"}, reason=Reason.CONTROL),
    "a version, a week": Query(service_version="1.7", since_unix=NOON, until_unix=NOON + 7 * 86_400),
    "search, a frequent word": Query(text="word0"),
    "search, a rare word": Query(text="word4321"),
    "search, two words": Query(text="word17 word170"),
    "search, a phrase": Query(text='"word1 word0"'),
    "search and filters": Query(text="word5", service="service-1", metric="faithfulness", score_max=0.5),
    "labelled": Query(labelled=True),
    "a trace that is not there": Query(trace_id="0" * 32),
}


def timed(work: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each of some runs."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append((time.perf_counter() - start) * 1e3)
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args(argv)
    count = 1_000 if args.quick else args.cases
    with tempfile.TemporaryDirectory() as directory:
        read(Path(directory) / "read" / "review.sqlite", count, times=3 if args.quick else 15)
        write(Path(directory), 100 if args.quick else 2_000)
    return 0


def read(path: Path, count: int, *, times: int) -> None:
    options = Options(max_cases=10**9, max_age_days=10**6, read_seconds=600)
    store = SqliteStore(path, options, clock=SystemClock(), telemetry=Telemetry())
    store.open()
    start, cpu = time.perf_counter(), time.process_time()
    for case in cases(count, random.Random(1)):
        while not store.put(case):
            store.flush()
    store.flush(600)
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    store.retain()
    stats = store.stats()
    print(f"{stats.cases:,} cases, {stats.bytes / stats.cases:,.0f} bytes each, written in {took:.0f} s")
    print(f"{count / took:,.0f} a second; {cpu / count * 1e6:,.0f} us of the processor each, making them included")
    ids = [row.id for row in store.find(Query(), limit=200).rows]
    turn = iter(ids * 100)
    one = timed(lambda: store.get(next(turn)), times * 5)
    base = statistics.median(one)
    print(f"{'':28} {'median ms':>10} {'slowest':>10} {'x case':>8}")
    line("a case by its id", one, base)
    for name, query in QUESTIONS.items():
        line(name, timed(lambda query=query: store.find(query), times), base)
        line("  counted", timed(lambda query=query: store.count(query), times), base)
    page = store.find(Query(), limit=50)
    for _ in range(20):
        page = store.find(Query(), after=page.next, limit=50)
    line("queue, page 20", timed(lambda: store.find(Query(), after=page.next), times), base)
    line("facets", timed(store.facets, times), base)
    start = time.perf_counter()
    erased = store.erase(Subject(SubjectKind.USER, "user-77"))
    print(f"erasing a user of {len(erased.case_ids)} cases, verified: {time.perf_counter() - start:.1f} s")
    store.close()


def line(name: str, times: Sequence[float], base: float) -> None:
    middle = statistics.median(times)
    print(f"{name:28} {middle:10.2f} {max(times):10.2f} {middle / base:8.1f}")


def write(directory: Path, count: int) -> None:
    """The thread that ingests: scores, then hands to the picker. The writer's thread shares the interpreter with it."""
    items = list(interactions(count))
    scorers = build(tier=Tier.FAST)
    everything = PickOptions(control=ControlOptions(rate=1, per_day=1e12))
    print(f"\ningest of {count:,} interactions beside the store")
    base: tuple[float, float] | None = None
    for name, options in (
        ("without a store", None),
        ("picked by default", PickOptions()),
        ("every one a case", everything),
    ):
        best = (float("inf"), float("inf"))
        for attempt in range(3):
            path = directory / f"{name}-{attempt}" / "review.sqlite"
            store = SqliteStore(
                path, Options(queue_cases=10**6, queue_bytes=2**30), clock=SystemClock(), telemetry=Telemetry()
            )
            store.open()
            picker = None if options is None else Picker(
                options, store=store, builder=Builder(), chance=Uniform("bench", "review.control"), judging=False,
                clock=SystemClock(), telemetry=Telemetry(),
            )  # fmt: skip
            wall, own = time.perf_counter(), time.thread_time()
            for item in items:
                (results,) = run_local(scorers, [item])
                if picker is not None:
                    decision = Decision(Fate.SAMPLED_OUT, 0.05, "base")
                    picker.settle(
                        Settled(Found(item, ended_unix_nano=time.time_ns()), decision, tuple(results), ())
                    )
            best = (min(best[0], time.perf_counter() - wall), min(best[1], time.thread_time() - own))
            store.flush(600)
            kept = store.stats().cases
            store.close()
        base = base or best
        wall, own = best[0] / base[0], best[1] / base[1]
        print(f"{name:28} {kept:8,} cases   wall x {wall:.2f}   processor of the thread x {own:.2f}")


if __name__ == "__main__":
    sys.exit(main())

"""How long the review pages take over a large store: the median and the slowest of some requests, of the whole way
from the request to the page.

    python -m tests.bench.review_pages [--cases N] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))  # run as a script too

import httpx

from collector.pipeline.clock import ManualClock
from collector.review.case import Case, Pick, Reason
from collector.review.labels import Draft, LabelKind
from collector.review.options import Options
from collector.review.sqlite import SqliteStore
from collector.telemetry.instruments import Telemetry
from tests.support.review_pages import NOON, site, warranty

_NOUNS = "warranty refund router invoice delivery contract screen battery password insurance voucher plan".split()  # noqa: SIM905  # words


def case(number: int, dice: Random) -> Case:
    base = warranty(number, low=dice.random())
    words = " ".join(dice.choices(_NOUNS, k=12))
    reasons = [Pick(Reason.CONTROL, NOON, 0.05, dice.random())] if number % 3 == 0 else []
    reasons += (
        [Pick(dice.choice([Reason.LOW_SCORE, Reason.DISAGREEMENT, Reason.FEEDBACK]), NOON)] if number % 3 else []
    )
    interaction = replace(base.interaction, question=f"Case {number}: {words}?")
    # One in fifty holds a word that is searched for, as searches for something are.
    if number % 50 == 0:
        interaction = replace(interaction, response=f"{interaction.response} Zanzibar.")
    return replace(base, picks=tuple(reasons), interaction=interaction, ended_unix=NOON - number)


def fill(store: SqliteStore, count: int) -> None:
    dice = Random(7)
    for number in range(count):
        made = case(number, dice)
        while not store.put(made):
            store.flush()
    store.flush(600)
    for number in range(0, min(count, 3_000), 3):
        store.label(
            f"case-{number:016x}",
            [Draft(LabelKind.COMMENT, "x")],
            author=f"person {number % 4}",
            expected_revision=0,
        )


PAGES = {
    "queue": "/review",
    "search, newest": "/review/search",
    "search, one word in 50 cases": "/review/search?text=zanzibar",
    "search, a word of most cases": "/review/search?text=warranty",
    "search, score range": "/review/search?metric=faithfulness&score_max=0.1&sort=lowest&labelled=false",
    "search, segment and reason": "/review/search?segment=tenant%3Dacme&reason=feedback",
    "case": "/review/case?id=case-0000000000000003&from=queue",
    "next case": "/review/next?from=queue",
    "API, list": "/api/v1/review/cases?metric=faithfulness&score_max=0.1",
}


async def measure(store: SqliteStore, rounds: int) -> None:
    app, _ = site(store=store)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as http:
        for name, path in PAGES.items():
            times = []
            for _ in range(rounds):
                started = time.perf_counter()
                reply = await http.get(path)
                times.append((time.perf_counter() - started) * 1000)
                if reply.status_code not in (200, 303):
                    raise SystemExit(f"{path}: {reply.status_code}")
            print(f"{name:32} median {statistics.median(times):7.1f} ms   slowest {max(times):7.1f} ms")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--quick", action="store_true", help="2,000 cases")
    args = parser.parse_args(argv)
    count = 2_000 if args.quick else args.cases
    with tempfile.TemporaryDirectory() as directory:
        options = Options(max_cases=10**9)
        store = SqliteStore(Path(directory) / "review.sqlite", options, clock=ManualClock(), telemetry=Telemetry())
        store.open()
        started = time.monotonic()
        fill(store, count)
        print(f"{count} cases, filled in {time.monotonic() - started:.0f} s")
        asyncio.run(measure(store, 5 if args.quick else 20))
        store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

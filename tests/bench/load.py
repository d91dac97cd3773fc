"""What `groundwatch run` takes at a steady load: CPU and memory per 100 interactions a second, start to ready.

python tests/bench/load.py [--quick] [--rate 100] [--seconds 30] [--passages 5] [--chars 1000]

RAG traces of three spans are sent over OTLP/HTTP, ten to a request, by this process; CPU is that of the sidecar and of
its workers alone. The baseline of the same run is reading the same requests without keeping anything (the lazy decode
floor), so that machines can be compared.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psutil

from collector.otlp.batch import Signal
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader
from tests.support.sidecar import Sidecar, quick_config
from tests.support.traces import body, rag_trace

_BATCH = 10
_WORDS = [
    "valve",
    "pressure",
    "service",
    "filter",
    "cabin",
    "reserve",
    "ticket",
    "platform",
    "engine",
    "season",
    "garden",
    "method",
    "copper",
    "window",
    "signal",
    "harvest",
    "river",
    "council",
    "budget",
    "station",
    "winter",
    "paper",
    "cargo",
    "island",
    "market",
    "yellow",
    "voice",
    "bridge",
    "science",
    "motor",
]


def _passage(dice: random.Random, chars: int) -> str:
    text = ""
    while len(text) < chars:
        text += " ".join(dice.choices(_WORDS, k=12)).capitalize() + f" {dice.randrange(2000)}. "
    return text[:chars]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="three seconds at 20 interactions a second")
    parser.add_argument("--rate", type=float, default=100, help="interactions a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--passages", type=int, default=5)
    parser.add_argument("--chars", type=int, default=1000, help="characters of a passage")
    args = parser.parse_args(argv)
    if args.quick:
        args.rate, args.seconds = 20, 3

    dice = random.Random(7)
    library = [_passage(dice, args.chars) for _ in range(200)]

    def request() -> bytes:
        spans = []
        for _ in range(_BATCH):
            contexts = dice.sample(library, args.passages)
            answer = " ".join(text.split(". ")[0] + "." for text in contexts[:3])
            spans += rag_trace(dice, contexts=contexts, response=answer)
        return body(spans)

    count = int(args.rate * args.seconds / _BATCH)
    requests = [request() for _ in range(count)]
    reader = RequestReader()
    begun = time.process_time()
    for one in requests:
        reader.read(one, Signal.TRACES, Encoding.PROTO)
    floor = time.process_time() - begun

    with tempfile.TemporaryDirectory() as directory:
        begun = time.monotonic()
        sidecar = Sidecar(Path(directory), quick_config())
        try:
            sidecar.ready()
            print(f"start to ready          {time.monotonic() - begun:.1f} s")
            _run(args, sidecar, requests, floor)
        finally:
            sidecar.end()
    return 0


def _run(args: argparse.Namespace, sidecar: Sidecar, requests: list[bytes], floor: float) -> None:
    family = [psutil.Process(sidecar.process.pid), *sidecar.children()]
    print(f"memory at rest          {_memory(family):.0f} MB")
    before = _cpu(family)
    begun = time.monotonic()
    for number, one in enumerate(requests):
        ahead = begun + number * _BATCH / args.rate - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        sidecar.client.post(
            f"{sidecar.http}/v1/traces", content=one, headers={"content-type": "application/x-protobuf"}
        ).raise_for_status()
    sent = time.monotonic() - begun
    interactions = len(requests) * _BATCH
    sidecar.wait_for_interactions(interactions)
    used = [after - was for after, was in zip(_cpu(family), before, strict=True)]
    found = sidecar.metrics().total("groundwatch_interactions_found_total")
    print(f"sent                    {interactions} interactions, {interactions / sent:.0f} a second")
    print(f"bytes an interaction    {len(requests[0]) / _BATCH:.0f}")
    print(f"screened                {found:.0f}")
    for name, seconds in (("main process", used[0]), ("workers", sum(used[1:]))):
        share, each = 100 * seconds / sent, 1000 * seconds / interactions
        print(f"CPU, {name:<19}{share:.0f} % of a core, {each:.1f} ms an interaction")
    print(f"all CPU to lazy decode  {sum(used) / floor:.0f} x")
    print(f"memory under load       {_memory(family):.0f} MB")


def _cpu(family: list[psutil.Process]) -> list[float]:
    """Seconds of CPU, user and system, of each process."""
    return [sum(process.cpu_times()[:2]) for process in family]


def _memory(family: list[psutil.Process]) -> float:
    """Resident megabytes of all processes together."""
    return sum(process.memory_info().rss for process in family) / 1e6


if __name__ == "__main__":
    sys.exit(main())

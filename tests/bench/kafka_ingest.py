"""CPU of consuming Kafka with receipts, against a bare poll loop that decodes lazily, on the same topic.

    python -m tests.bench.kafka_ingest [--quick]

Messages are RAG traces of three spans and five passages (about 7 KB), zstd, once as protobuf is mostly written, once
as the Collector's exporter writes it (fields from the last to the first). The floor is `getmany` and, for each message,
splitting it, reading the ids, and decoding every attribute of 1 % of the spans. Ours is the receiver with border and
receipts, the same decoded; and the same with the assembler, which finds a hint in every span and lets go of traces when
they are released. Each figure is the median of several rounds, in which the floor and ours take turns: others may use
the machine. Aim (rate): at least a third of the floor's, with receipts.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from aiokafka import AIOKafkaConsumer

from collector.assembly.assembler import Assembler
from collector.assembly.options import Options as AssemblyOptions
from collector.config import Config
from collector.extract.extractor import trace_hints
from collector.otlp.batch import Batch, Signal
from collector.otlp.decode import Decoder
from collector.otlp.model import Encoding, RawItem
from collector.otlp.request import Interner, RequestReader
from collector.pipeline.clock import SystemClock
from collector.pipeline.garbage import collect_less_often
from collector.receivers.border import Border
from collector.receivers.kafka import KafkaReceiver
from collector.receivers.kafka_options import KafkaOptions
from collector.records.trace import ReleasedTrace
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from tests.support import traces
from tests.support.kafka.clients import Sent, make_topics, produce
from tests.support.kafka.cluster import KafkaCluster
from tests.support.kafka.jars import NoKafka, jars

_DECODED_ONE_IN = 100
_LENGTH_DELIMITED, _FIXED64, _FIXED32 = 2, 1, 5
_QUIET_SECONDS = 0.5


def fields(message: bytes) -> Iterator[bytes]:
    """The fields of a protobuf message, each with its tag."""
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            size, at = _varint(message, at)
            at += size
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            _, at = _varint(message, at)
        yield message[start:at]


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def backwards(message: bytes, levels: int = 3) -> bytes:
    """The same message with its fields, and those of the messages in it, from the last to the first."""
    turned = []
    for field in fields(message):
        tag, at = _varint(field, 0)
        # Field 2 of a request's groups holds scopes, of these spans; field 1 of the request holds the groups.
        below = tag == (1 << 3 | _LENGTH_DELIMITED) if levels == 3 else tag == (2 << 3 | _LENGTH_DELIMITED)
        if levels and below:
            _, body = _varint(field, at)
            inner = backwards(field[body:], levels - 1)
            turned.append(field[:at] + _as_varint(len(inner)) + inner)
        else:
            turned.append(field)
    return b"".join(reversed(turned))


def _as_varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def messages(topic: str, count: int, turn: Callable[[bytes], bytes]) -> list[Sent]:
    dice = random.Random(5)
    words = ["valve", "pressure", "service", "filter", "cabin", "reserve", "ticket", "platform"]
    passages = [" ".join(dice.choices(words, k=170)) for _ in range(200)]
    found = []
    for _ in range(count):
        spans = traces.rag_trace(dice, contexts=dice.sample(passages, 5))
        found.append(Sent(topic, turn(traces.body(spans)), spans[0].trace_id.hex().encode()))
    return found


async def floor(bootstrap: str, topic: str, count: int, group: str) -> float:
    """CPU seconds of the bare loop."""
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, auto_offset_reset="earliest")
    await consumer.start()
    reader, decoder = RequestReader(intern=Interner()), Decoder()
    seen = spans = 0
    started = time.process_time()
    while seen < count:
        for batch in (await consumer.getmany(timeout_ms=200, max_records=500)).values():
            for message in batch:
                seen += 1
                for group in reader.read(message.value, Signal.TRACES, Encoding.PROTO).groups:
                    for item in group.items:
                        spans += 1
                        if spans % _DECODED_ONE_IN == 0:
                            decoder.span(RawItem(item, group.resource, group.scope, Encoding.PROTO))
    used = time.process_time() - started
    await consumer.stop()
    return used


class Decodes:
    """An intake that decodes as the floor does, and lets go at once."""

    def __init__(self, seen: Callable[[int], None]) -> None:
        self._decoder = Decoder()
        self._spans = 0
        self._seen = seen

    def offer(self, batch: Batch) -> None:
        for group in batch.groups:
            for item in group.items:
                self._spans += 1
                if self._spans % _DECODED_ONE_IN == 0:
                    self._decoder.span(RawItem(item, group.resource, group.scope, Encoding.PROTO))
        self._seen(len(batch.receipts or ()))


async def nothing() -> None:
    """No books to write, no results to send."""


async def ours(bootstrap: str, topic: str, count: int, *, assembled: bool, group: str) -> float:
    """CPU seconds of the receiver with border and receipts, until every message is settled; `assembled`: with the
    assembler behind it, else with an intake that decodes as the floor does."""
    telemetry, clock = Telemetry(), SystemClock()
    done = 0

    def seen(more: int) -> None:
        nonlocal done
        done += more

    def release(trace: ReleasedTrace) -> None:
        seen(1)
        assert trace.receipt is not None
        trace.receipt.release()

    assembler = Assembler(
        AssemblyOptions(quiet_seconds=_QUIET_SECONDS, max_bytes=2**31),
        hints=trace_hints(Config().extract),
        clock=clock,
        telemetry=telemetry,
        downstream=release,
    )
    intake = assembler if assembled else Decodes(seen)
    receiver = KafkaReceiver(
        KafkaOptions.model_validate(
            {"brokers": bootstrap, "topics": topic, "group_id": group, "start": "earliest"}
        ),
        environ={},
        border=Border(
            transport="kafka", intake=intake, telemetry=telemetry, max_item_bytes=2**22, intern=Interner()
        ),
        records=release,
        fill=lambda: 0.0,
        most=1_000,
        decided=assembler.drop_lost,
        settle=nothing,
        health=lambda component, reason: None,
        clock=clock,
        telemetry=telemetry,
        events=Events(telemetry, clock, logging.getLogger("bench")),
    )
    await receiver.start()
    while not receiver._group.placed:
        await asyncio.sleep(0.05)
    started = time.process_time()
    while done < count:
        await asyncio.sleep(0.1)
        assembler.tick()
    used = time.process_time() - started
    await receiver.stop_polling(5)
    await receiver.close(5)
    return used


async def compare(bootstrap: str, topic: str, count: int, rounds: int) -> None:
    """Print the CPU of each, and its share of the floor's rate in the same round."""
    what = ("floor", "with receipts", "with the assembler")
    used: list[list[float]] = [[], [], []]
    for number in range(rounds):
        used[0].append(await floor(bootstrap, topic, count, f"{topic}-{number}-floor"))
        for place, assembled in ((1, False), (2, True)):
            group = f"{topic}-{number}-{place}"
            used[place].append(await ours(bootstrap, topic, count, assembled=assembled, group=group))
    for name, mine in zip(what, used, strict=True):
        share = statistics.median(bare / own for bare, own in zip(used[0], mine, strict=True))
        print(f"fields {topic:10} {name:25} {statistics.median(mine) / count * 1e6:14.1f} {share:7.2f}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--quick", action="store_true", help="one round of 1,000 messages instead of five of 5,000"
    )
    quick = parser.parse_args(argv).quick
    count, rounds = (1_000, 1) if quick else (5_000, 5)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    collect_less_often()  # as `groundwatch run` does; the floor has the benefit too
    try:
        where = jars()
    except NoKafka as error:
        print(f"skipped: {error}")
        return 0
    with tempfile.TemporaryDirectory() as scratch, KafkaCluster(Path(scratch) / "kafka", where) as cluster:
        print("us CPU a message, and the rate as a share of the floor's")
        for name, turn in (("usual", bytes), ("collector", backwards)):
            asyncio.run(make_topics(cluster.bootstrap, {name: 4}))
            asyncio.run(
                produce(cluster.bootstrap, messages(name, count, turn), compression_type="zstd", linger_ms=20)
            )
            asyncio.run(compare(cluster.bootstrap, name, count, rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())

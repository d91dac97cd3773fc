"""Whatever the brokers do: every result is written at least once or counted as lost, and its source is told once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka.errors import KafkaTimeoutError, MessageSizeTooLargeError, OutOfOrderSequenceNumber
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.telemetry import metrics
from tests.unit.exporters.test_results_topic import Rig, Source, settled

_ERRORS = {
    "refused": KafkaTimeoutError,
    "sequence": OutOfOrderSequenceNumber,
    "too_large": MessageSizeTooLargeError,
    "odd": RuntimeError,
}


@dataclass(frozen=True)
class Sending:
    """One interaction: whether its source would give it again, and what the brokers say to each try in turn."""

    kept: bool
    answers: tuple[str, ...]
    at_once: bool


sendings = st.builds(
    Sending,
    st.booleans(),
    st.lists(st.sampled_from(["refused", "sequence", "odd", "too_large"]), max_size=3).map(tuple),
    st.booleans(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(sendings, max_size=12), st.integers(1, 12), st.booleans())
def test_nothing_is_lost_uncounted(sent: Sequence[Sending], room: int, content: bool) -> None:
    asyncio.run(run(sent, room, content=content))


async def run(sent: Sequence[Sending], room: int, *, content: bool) -> None:
    rig = Rig(queue_messages=room, content=content, retry_seconds=1e-6)
    left = {f"i{number}": list(one.answers) for number, one in enumerate(sent)}
    at_once = {f"i{number}": one.at_once for number, one in enumerate(sent)}
    sources: dict[str, Source] = {}

    def refuse(value: bytes) -> Exception | None:
        name = next(name for name in left if f'"{name}"'.encode() in value)
        rig.topic.fails_at_once = at_once[name]
        return _ERRORS[left[name].pop(0)]() if left[name] else None

    rig.topic.refuses = refuse
    for number, one in enumerate(sent):
        source = Source() if one.kept else None
        rig.results.settle(settled(f"i{number}", receipt=source.receipt if source else None))
        if source is not None:
            sources[f"i{number}"] = source
            source.receipt.release()
    async with rig.running():
        await rig.results.flush(10)
    assert rig.results.waiting == 0
    assert rig.value(metrics.RESULTS_WAITING_BYTES.name) == 0
    assert rig.topic.closed == rig.topic.connections
    count = Counter(
        {outcome: rig.count(outcome) for outcome in ("sent", "dropped_queue_full", "dropped_too_large")}
    )
    assert sum(count.values()) == len(sent)
    written = set(rig.topic.ids)
    assert len(written) == count["sent"]
    assert all(source.settled == 1 for source in sources.values())
    lost = set(left) - written
    assert len(lost) == count["dropped_queue_full"] + count["dropped_too_large"]
    for name in (
        lost & sources.keys()
    ):  # what its source would give again is lost only where it can never be written
        assert "too_large" in sent[int(name[1:])].answers

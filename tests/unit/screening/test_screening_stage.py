"""The stage: bounds, shedding with a known probability, isolation of bad traces, draining."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from prometheus_client import CollectorRegistry

from collector.otlp.model import Encoding, RawItem
from collector.pipeline.clock import ManualClock
from collector.pipeline.workers import BatchFailedError, Loss
from collector.records.found import Found
from collector.records.settled import Screened
from collector.records.trace import Release, ReleasedTrace
from collector.screening.options import Options
from collector.screening.screen import Examined
from collector.screening.shares import place_in_unit
from collector.screening.stage import Screening, size_of
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction


def trace(name: str, size: int = 10, kept: float = 1.0) -> ReleasedTrace:
    item = RawItem(b"x" * size, b"resource", b"scope", Encoding.PROTO)
    return ReleasedTrace(name, (item,), (), Release.QUIET, True, 0, kept_probability=kept)


class ScriptedPool:
    """Examines at once: one interaction a trace; fails batches that hold a poisonous trace, and raises what nobody
    expects for an odd one; waits when closed."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers
        self.batches: list[list[str]] = []
        self.poison: set[str] = set()
        self.odd: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, batch: Sequence[ReleasedTrace], /) -> list[Examined]:
        self.batches.append([one.trace_id for one in batch])
        await self.gate.wait()
        if any(one.trace_id in self.poison for one in batch):
            raise BatchFailedError(Loss.DIED)
        if any(one.trace_id in self.odd for one in batch):
            raise OSError("no room for one more")
        return [
            Examined(
                (Screened(Found(Interaction(one.trace_id)), (), one.kept_probability),),
                "interactions",
            )
            for one in batch
        ]


class Notebook:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def note(self, trace_id: str, stage: str, text: str) -> None:
        assert stage == "screening"
        self.lines.append((trace_id, text))


class Bench:
    """A stage over a scripted pool, with what came out of it."""

    def __init__(self, **options: object) -> None:
        self.pool = ScriptedPool()
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.out: list[Screened] = []
        self.notes = Notebook()
        self.stage = Screening(
            Options.model_validate(options),
            pool=self.pool,
            clock=self.clock,
            telemetry=Telemetry(self.registry),
            downstream=self.out.append,
            notes=self.notes,
        )

    def outcome(self, name: str) -> float | None:
        return self.registry.get_sample_value("groundwatch_screening_traces_total", {"outcome": name})

    def gauge(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"groundwatch_screening_{name}")

    def ids(self) -> list[str]:
        return [one.found.interaction.id for one in self.out]


async def test_every_trace_comes_out_with_probability_one_when_there_is_room() -> None:
    bench = Bench(batch_traces=4)
    await bench.stage.start()
    for number in range(10):
        bench.stage.accept(trace(str(number), kept=0.5 if number == 3 else 1.0))
    assert await bench.stage.stop(5) == 0
    assert sorted(bench.ids()) == [str(number) for number in range(10)]
    assert {one.probability for one in bench.out if one.found.interaction.id != "3"} == {1.0}
    assert [one.probability for one in bench.out if one.found.interaction.id == "3"] == [0.5]
    assert max(map(len, bench.pool.batches)) == 4
    assert bench.outcome("screened") == 10


async def test_batches_are_bounded_in_bytes_but_a_large_trace_passes_alone() -> None:
    small = size_of(trace("a", 10))
    bench = Bench(batch_bytes=2 * small)
    for name in "abc":
        bench.stage.accept(trace(name, 10))
    bench.stage.accept(trace("large", 100_000))
    await bench.stage.start()
    await bench.stage.stop(5)
    assert bench.pool.batches == [["a", "b"], ["c"], ["large"]]


async def test_a_queue_that_fills_sheds_by_hash_and_says_with_what_probability() -> None:
    bench = Bench(queue_traces=200, shed_from=0.5)
    names = [f"trace-{number}" for number in range(2000)]
    for name in names:
        bench.stage.accept(trace(name))
    shed, full = bench.outcome("shed"), bench.outcome("dropped_full")
    assert shed is not None and full is not None and shed > 0
    assert bench.stage.waiting + shed + full == len(names)
    assert bench.stage.waiting <= 200
    await bench.stage.start()
    await bench.stage.stop(5)
    weights = {one.probability for one in bench.out}
    assert 1.0 in weights and min(weights) < 0.5
    for one in bench.out:
        if one.probability < 1:
            assert place_in_unit("screening", one.found.interaction.id) < one.probability
    # Horvitz-Thompson over all that came while there was room: the weights add up to what arrived.
    estimate = sum(1 / one.probability for one in bench.out)
    assert estimate == pytest.approx(len(names) - full, rel=0.35)
    assert any("kept with probability" in text for _, text in bench.notes.lines)


async def test_shed_probabilities_are_unbiased_over_salts() -> None:
    """The weighted count of what is kept, averaged over salts, is the number of traces (1000 x 60 decisions)."""
    totals = []
    for salt in range(60):
        bench = Bench(queue_traces=5000, shed_from=0.01, salt=f"salt-{salt}")
        for number in range(1000):
            bench.stage.accept(trace(f"{number:032x}"))
        await bench.stage.start()
        await bench.stage.stop(5)
        totals.append(sum(1 / one.probability for one in bench.out))
    assert sum(totals) / len(totals) == pytest.approx(1000, rel=0.03)


async def test_bytes_bound_the_queue_too_and_one_trace_always_fits() -> None:
    bench = Bench(queue_bytes=5_000, shed_from=0.99)
    bench.stage.accept(trace("large", 50_000))
    bench.stage.accept(trace("next", 10))
    assert bench.stage.waiting == 1
    assert (bench.outcome("shed") or 0) + (bench.outcome("dropped_full") or 0) == 1


async def test_an_error_of_another_kind_costs_its_trace_and_not_the_stage() -> None:
    bench = Bench(batch_traces=1)
    bench.pool.odd = {"bad"}
    await bench.stage.start()
    for name in ("a", "bad", "b"):
        bench.stage.accept(trace(name))
    assert await bench.stage.stop(5) == 0
    assert sorted(bench.ids()) == ["a", "b"]
    assert (bench.outcome("failed"), bench.outcome("screened")) == (1, 2)
    assert ("bad", "screening failed: OSError") in bench.notes.lines


async def test_a_poisonous_trace_is_lost_alone() -> None:
    bench = Bench()
    bench.pool.poison = {"bad"}
    for name in ("a", "bad", "b"):
        bench.stage.accept(trace(name))
    await bench.stage.start()
    assert await bench.stage.stop(5) == 0
    assert sorted(bench.ids()) == ["a", "b"]
    assert (bench.outcome("failed"), bench.outcome("screened")) == (1, 2)
    assert bench.registry.get_sample_value("groundwatch_traces_examined_total", {"found": "error"}) == 1
    assert ("bad", "screening failed: died") in bench.notes.lines


async def test_a_failing_downstream_does_not_stop_the_stage(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    seen: list[str] = []

    def odd(one: Screened) -> None:
        if one.found.interaction.id == "a":
            raise RuntimeError("bug")
        seen.append(one.found.interaction.id)

    bench.stage = Screening(
        Options(), pool=bench.pool, clock=bench.clock, telemetry=Telemetry(CollectorRegistry()), downstream=odd
    )
    await bench.stage.start()
    for name in ("a", "b"):
        bench.stage.accept(trace(name))
    await bench.stage.stop(5)
    assert seen == ["b"]
    assert "handing on" in caplog.text


async def test_stop_drops_and_counts_what_the_grace_time_does_not_cover() -> None:
    bench = Bench(batch_traces=2)
    bench.pool.gate.clear()
    await bench.stage.start()
    for number in range(5):
        bench.stage.accept(trace(str(number)))
    assert await bench.stage.stop(0.01) == 5
    assert bench.outcome("dropped_shutdown") == 5
    assert bench.stage.waiting == 0 and bench.out == []
    assert await bench.stage.stop(0.01) == 0


async def test_gauges_tell_length_bytes_and_age() -> None:
    bench = Bench()
    bench.stage.refresh()
    assert bench.gauge("queue_age_seconds") == 0
    bench.stage.accept(trace("a"))
    bench.clock.advance(7)
    bench.stage.accept(trace("b"))
    bench.stage.refresh()
    assert bench.gauge("queue_age_seconds") == 7
    assert bench.gauge("queue_traces") == 2
    assert bench.gauge("queue_bytes") == size_of(trace("a")) + size_of(trace("b"))
    assert bench.gauge("keep_probability") == 1
    await bench.stage.stop(0)


def test_shared_resources_are_counted_once() -> None:
    resource = b"r" * 1000
    items = tuple(RawItem(b"x", resource, b"", Encoding.PROTO) for _ in range(3))
    many = ReleasedTrace("t", items, (), Release.QUIET, True, 0)
    assert size_of(many) < 3 * 1000

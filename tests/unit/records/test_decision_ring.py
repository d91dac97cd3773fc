"""The ring answers why, and stays small."""

from __future__ import annotations

import json
import tracemalloc

from collector.pipeline.clock import ManualClock
from collector.records.ring import Ring


def test_notes_come_back_in_order_with_time_and_facts() -> None:
    clock = ManualClock()
    ring = Ring(10, clock=clock)
    ring.note("aa", "assembly", "released", spans=3)
    ring.note("bb", "assembly", "released")
    clock.advance(1.5)
    ring.note("aa", "sampling", "queued", policy="rate", probability=0.05)
    assert ring.explain("aa") == [
        {"time": "2023-11-14T22:13:20.000+00:00", "stage": "assembly", "text": "released", "facts": {"spans": 3}},
        {
            "time": "2023-11-14T22:13:21.500+00:00",
            "stage": "sampling",
            "text": "queued",
            "facts": {"policy": "rate", "probability": 0.05},
        },
    ]
    assert ring.explain("cc") == []
    assert ring.line("assembly", "open")["text"] == "open"


def test_the_oldest_is_forgotten() -> None:
    ring = Ring(4, clock=ManualClock())
    for number in range(9):
        ring.note("aa" if number % 2 else "bb", "s", str(number))
    assert len(ring) == 4
    assert [line["text"] for line in ring.explain("aa")] == ["5", "7"]
    assert [line["text"] for line in ring.explain("bb")] == ["6", "8"]
    ring.note("cc", "s", "x")
    assert [line["text"] for line in ring.explain("aa")] == ["7"]


def test_a_ring_of_nothing_remembers_nothing() -> None:
    ring = Ring(0, clock=ManualClock())
    ring.note("aa", "s", "x")
    assert ring.explain("aa") == []


def test_memory_is_bounded_whatever_it_is_told() -> None:
    ring = Ring(100, clock=ManualClock())
    tracemalloc.start()
    for number in range(2_000):
        facts = {f"fact{index}": "v" * 5_000 for index in range(30)}
        ring.note(f"{number:032x}", "s", "t" * 100_000, **facts)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 100 * 10_000
    json.dumps(ring.explain(f"{1_999:032x}"))


def test_strange_values_are_told_as_text() -> None:
    ring = Ring(1, clock=ManualClock())
    ring.note("aa", "s", "x", odd={1: object}, none=None, yes=True)
    (line,) = ring.explain("aa")
    assert line["facts"] == {"odd": "{1: <class 'object'>}", "none": None, "yes": True}

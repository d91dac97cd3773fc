"""The search finds exactly the items in which a hint occurs."""

from __future__ import annotations

import random

import numpy as np
import pytest

from collector.assembly.hints import HintSearch, is_own, minimal

HINTS = (b"gen_ai.", b"gen_ai.input", b"llm.", b"openinference.span.kind", b"ai.operationId")


def rows(search: HintSearch, items: list[bytes]) -> list[int]:
    ends = np.fromiter(map(len, items), np.int64, len(items)).cumsum()
    return search.rows(items, b"".join(items) + bytes(64), ends)


def test_minimal_drops_what_is_implied() -> None:
    assert minimal([b"gen_ai.input", b"ai.", b"", b"llm.", b"llm."]) == [b"ai.", b"llm."]


@pytest.mark.parametrize("seed", range(4))
def test_against_a_plain_search(seed: int) -> None:
    rng = random.Random(seed)
    search = HintSearch(HINTS, (b"event.name",))
    pieces = [
        b"",
        b"gen_",
        b"ai.",
        b"x" * 30,
        b"llm",
        b".",
        b"\xf8" * 9,
        b"\xfa" * 8,
        b"openinference.span.",
        b"kind",
    ]
    pieces += [*HINTS, b"event.name", b"groundwatch.evaluation", b"groundwatch-"]
    items = [b"".join(rng.choices(pieces, k=rng.randrange(5))) for _ in range(400)]
    expected = [
        index
        for index, item in enumerate(items)
        if any(
            hint in item for hint in (*HINTS, b"event.name", b"groundwatch.evaluation", b"groundwatch-evaluation")
        )
    ]
    assert rows(search, items) == expected
    assert 0 < len(expected) < 400


def test_many_hints_are_sought_in_several_passes() -> None:
    hints = [f"hint{number:03d}".encode() for number in range(130)]
    items = [b"..", *(b"x" * 40 + hint for hint in hints), b"hint", hints[7] + hints[100]]
    assert rows(HintSearch(hints), items) == [*range(1, 131), 132]


def test_a_match_over_the_border_of_two_items_is_none() -> None:
    search = HintSearch(HINTS)
    assert rows(search, [b"..gen_", b"ai...", b"llm"]) == []
    assert rows(search, [b"..gen_ai", b".llm.", b"x"]) == [1]


def test_nothing_in_nothing() -> None:
    assert rows(HintSearch(HINTS), [b"", b"", b"abc"]) == []


def test_log_event_conventions_and_own_traffic() -> None:
    search = HintSearch(HINTS, (b"gen_ai.client",))
    assert search.log_events(b"..gen_ai.client.inference") and not search.log_events(b"gen_ai.usage")
    assert is_own(b"x groundwatch-evaluation: 1") and is_own(b"groundwatch.evaluation")
    assert not is_own(b"groundwatch")

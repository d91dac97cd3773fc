"""The search finds exactly the items in which a hint occurs, and what it tells."""

from __future__ import annotations

import random

import pytest

from collector.assembly.hints import CONTENT, LOG_EVENTS, OWN, WANTED, HintSearch, is_own, minimal, pieces
from collector.otlp.model import Encoding
from collector.otlp.rows import Rows
from collector.records.hints import Hints

WHOLE = WANTED | CONTENT
HINTS = Hints(
    wanted=(b"gen_ai.", b"gen_ai.input", b"llm.", b"openinference.span.kind", b"ai.operationId"),
    wanted_keys=(b"docs", b"documents"),
    content=(b"gen_ai.", b"session", b"user.id", b"kindred", b"metadata", b"docs", b"documents"),
    log_events=(b"event.name", b"gen_ai.client"),
)


def find(hints: Hints, items: list[bytes], encoding: Encoding = Encoding.PROTO) -> dict[int, int]:
    return HintSearch(hints).find(items, Rows(items), encoding)


def wanted(hints: Hints, items: list[bytes]) -> list[int]:
    return sorted(index for index, says in find(hints, items).items() if says & WANTED)


def plainly(item: bytes, encoding: Encoding) -> int:
    """What the hints say of an item, sought one by one."""
    end = b"\x12" if encoding is Encoding.PROTO else b'"'
    says = CONTENT if any(hint in item for hint in HINTS.content) else 0
    says |= WHOLE if any(hint in item for hint in HINTS.wanted) else 0
    says |= WHOLE if any(key + end in item for key in HINTS.wanted_keys) else 0
    says |= WHOLE | LOG_EVENTS if any(hint in item for hint in HINTS.log_events) else 0
    return says | (OWN if is_own(item) else 0)


def test_minimal_drops_what_is_implied() -> None:
    assert minimal([b"gen_ai.input", b"ai.", b"", b"llm.", b"llm."]) == [b"ai.", b"llm."]


def test_pieces_stand_in_for_all_hints_and_for_several_where_they_can() -> None:
    hints = [b"Milvus", b"milvus", b"request_data", b"llm.", b"abc", b"url.full", b"thread_id"]
    found = pieces(hints)
    assert all(any(piece in hint for piece in found) for hint in hints)
    assert b"ilvus" in found and b"Milvus" not in found
    # What starts like an ordinary key is left out in front; what is nothing else stays as it is.
    assert b"request_data" not in found and b"abc" in found and b"url.full" in found


@pytest.mark.parametrize("encoding", Encoding)
@pytest.mark.parametrize("seed", range(4))
def test_against_a_plain_search(seed: int, encoding: Encoding) -> None:
    rng = random.Random(seed)
    parts = [b"", b"gen_", b"ai.", b"x" * 30, b"llm", b".", b"\xf8" * 9, b"\xfa" * 8, b"openinference.span."]
    parts += [b"kind", b'"', b"\x12", b"sess", b"ion", b"user", b".id", b"red", b"meta", b"a.client", b"docume"]
    parts += [*HINTS.wanted, *HINTS.content, *HINTS.log_events, b"nts", b"groundwatch.evaluation", b"groundwatch-"]
    items = [b"".join(rng.choices(parts, k=rng.randrange(6))) for _ in range(600)]
    expected = {index: plainly(item, encoding) for index, item in enumerate(items)}
    assert find(HINTS, items, encoding) == {index: says for index, says in expected.items() if says}
    assert {WHOLE, CONTENT, WHOLE | LOG_EVENTS, OWN, 0} <= set(expected.values())


@pytest.mark.parametrize("seed", range(3))
def test_what_one_hint_hides_of_another_is_seen(seed: int) -> None:
    """Texts of few letters, in which hints overlap at every place; hints of few letters too."""
    rng = random.Random(seed)
    words = {b"".join(rng.choices([b"a", b"b", b"."], k=rng.randrange(4, 7))) for _ in range(12)}
    some = sorted(words)
    hints = Hints(wanted=some[::3], content=some[1::3], log_events=some[2::3])
    items = [b"".join(rng.choices([b"a", b"b", b"."], k=rng.randrange(14))) for _ in range(500)]
    found = find(hints, items)
    for index, item in enumerate(items):
        says = CONTENT if any(hint in item for hint in hints.content) else 0
        says |= WHOLE if any(hint in item for hint in hints.wanted) else 0
        says |= WHOLE | LOG_EVENTS if any(hint in item for hint in hints.log_events) else 0
        assert found.get(index, 0) == says, (item, some)


def test_many_hints_are_sought_in_several_passes() -> None:
    hints = [b"%03dhint" % number for number in range(130)]
    items = [b"..", *(b"x" * 40 + hint for hint in hints), b"hint", hints[7] + hints[100]]
    assert wanted(Hints(hints), items) == [*range(1, 131), 132]


def test_a_match_over_the_border_of_two_items_is_none() -> None:
    assert find(HINTS, [b"..gen_", b"ai...", b"llm"]) == {}
    assert wanted(HINTS, [b"..gen_ai", b".llm.", b"x"]) == [1]


def test_nothing_in_nothing() -> None:
    assert find(HINTS, [b"", b"", b"abc"]) == {}


def test_a_key_counts_at_its_end_only() -> None:
    assert find(HINTS, [b"/docs/x", b"app.docs\x12\x03", b'{"docs":1}']) == {0: CONTENT, 1: WHOLE, 2: CONTENT}
    assert find(HINTS, [b"/docs/x", b"app.docs\x12", b'"app.docs"'], Encoding.JSON)[2] == WHOLE


@pytest.mark.parametrize("at", range(2**20 - 12, 2**20 + 3))
def test_a_large_request_is_searched_in_parts(at: int) -> None:
    """A hint that stands where two parts meet is found."""
    items = [b"." * at + b"llm.gen_ai.client" + b"." * 2**20, b"llm.", b"x" * 2**20, b"session"]
    assert find(HINTS, items) == {0: WHOLE | LOG_EVENTS, 1: WHOLE, 3: CONTENT}


def test_own_traffic() -> None:
    assert is_own(b"x groundwatch-evaluation: 1") and is_own(b"groundwatch.evaluation")
    assert not is_own(b"groundwatch")

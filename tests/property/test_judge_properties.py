"""What holds for every text: the reader never raises and stays linear, the fence can not be forged, ids decide."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.interaction import Field, Interaction, Passage
from scorers.judge.form import Call, interpret, render
from scorers.judge.material import Material, clean
from scorers.judge.question import Item, Labelling, Listing, Prompt
from scorers.judge.reader import read_json
from scorers.judge.tokens import estimate_tokens
from scorers.judged.arithmetic import average_precision, f_beta, noise_sensitivity
from scorers.refusal import noncommittal

ODD = st.text(st.characters(codec=None), max_size=300)  # lone surrogates included
JSONISH = st.text("{}[]\":,'\\ntrue0123456789.eE+-abc \n", max_size=400)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
LABELS = ("supported", "contradicted", "unsupported")


@given(JSONISH | ODD)
def test_the_reader_never_raises(text: str) -> None:
    read_json(text, expected=["a"])


@settings(max_examples=60)
@given(
    st.dictionaries(st.text(max_size=8), VALUES, min_size=1, max_size=5),
    st.sampled_from(["", "\n", "Sure:\n```json\n"]),
)
def test_clean_json_is_read_as_it_is(value: object, before: str) -> None:
    assert read_json(before + json.dumps(value), expected=list(value)).value == value  # type: ignore[call-overload]  # a dict


@given(st.dictionaries(st.sampled_from("abc"), st.sampled_from(["x", "yy"]), min_size=1), st.data())
def test_a_cut_reply_reads_as_a_part_of_the_whole(value: dict[str, str], data: st.DataObject) -> None:
    text = json.dumps(value)
    cut = read_json(text[: data.draw(st.integers(0, len(text) - 1))], expected=list(value)).value
    assert cut is None or (isinstance(cut, dict) and cut.items() <= value.items())


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        "[",
        '{"a":',
        '"',
        "[1] ",
        '" ',
        "</think>",
        "'a' ",
        "{a:1,",
        "\\",
        '["\\u',
        "1",
        "a" * 50 + " {",
        '\n"',
        "{'",
        ":",
    ],
)
def test_the_reader_is_linear_on_hostile_input(unit: str) -> None:
    """Eight times the input may take at most some 40 times as long: quadratic work would take 64 times.

    The sizes stay under the limit up to which a reply is read at all.
    """

    def seconds(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = min(_timed(text) for _ in range(2))
        return max(best, 0.002)

    assert seconds(400_000) <= 40 * seconds(50_000)


def _timed(text: str) -> float:
    start = time.perf_counter()
    read_json(text, expected=["a"])
    return time.perf_counter() - start


@given(st.lists(ODD, max_size=3), ODD, st.binary(min_size=1, max_size=16))
def test_no_text_holds_the_fence_of_its_prompt(contexts: list[str], response: str, secret: bytes) -> None:
    passages = tuple(Passage(text) for text in contexts)
    material = Material.of(Interaction("i", "q", passages, response), secret=secret)
    rendered = material.render({Field.CONTEXTS, Field.RESPONSE})
    texts = [text for _, text in material.passages] + list(material.texts.values())
    assert not any(material.nonce in text for text in texts)
    blocks = max(1, len(material.passages)) + (Field.RESPONSE in material.texts)
    assert rendered.count(material.nonce) == 2 * blocks
    rendered.encode("utf-8")


@given(ODD)
def test_cleaning_is_stable_and_encodable(text: str) -> None:
    once = clean(text)
    once.encode("utf-8")
    assert clean(once) == once


@given(st.text(max_size=3000), st.integers(30, 400))
def test_windows_hold_every_word(text: str, tokens: int) -> None:
    material = Material.of(Interaction("i", contexts=(Passage(text),)), secret=b"s")
    pieces = [piece for window in material.windows(Field.CONTEXTS, tokens) for _, piece in window.passages]
    position = 0
    whole = material.passages[0][1] if material.passages else ""
    for piece in pieces:
        start = whole.find(piece, max(0, position - 260))
        assert 0 <= start <= position
        position = start + len(piece)
    assert position == len(whole)


@given(st.dictionaries(st.integers(1, 12), st.sampled_from(LABELS)), st.integers(1, 8), st.randoms())
def test_verdicts_are_matched_by_id_in_any_order(given_labels: dict[int, str], count: int, random: object) -> None:
    items = tuple(Item(str(number), f"claim {number}") for number in range(1, count + 1))
    question = Labelling("v", Prompt("v", "1", "x"), frozenset({Field.CONTEXTS}), LABELS, items=items)
    call = Call((question,), Material.of(Interaction("i"), secret=b"s"))
    pairs = list(given_labels.items())
    random.shuffle(pairs)  # type: ignore[attr-defined]  # hypothesis' random.Random
    wanted = {str(number): label for number, label in given_labels.items() if number <= count}
    for reply in (
        {"v": {str(number): {"label": label} for number, label in pairs}},
        {"v": [{"id": number, "label": label, "reason": "r"} for number, label in pairs]},
    ):
        answer = interpret(call, ("v",), read_json(json.dumps(reply))).answers["v"]
        assert {key: one.label for key, one in answer.labels.items()} == wanted


@settings(max_examples=60)
@given(VALUES)
def test_interpreting_any_value_never_raises(value: object) -> None:
    text = json.dumps({"v": value, "l": value})
    items = (Item("1", "a"), Item("2", "b"))
    needs = frozenset({Field.CONTEXTS})
    questions = (
        Labelling("v", Prompt("v", "1", "x"), needs, LABELS, items=items),
        Listing("l", Prompt("l", "1", "x"), needs),
    )
    for fused in (False, True):
        call = Call(questions, Material.of(Interaction("i"), secret=b"s"), fused=fused)
        reply = interpret(call, render(call).names, read_json(text))
        for answer in reply.answers.values():
            assert set(answer.labels) <= {"1", "2"}
            assert all(one.label in LABELS for one in answer.labels.values())


@given(st.text(max_size=500))
def test_token_estimates_are_positive_and_grow(text: str) -> None:
    assert estimate_tokens(text) >= 1
    assert estimate_tokens(text * 2) >= estimate_tokens(text)


@given(st.lists(st.booleans(), max_size=12))
def test_average_precision_stays_in_its_range(relevant: list[bool]) -> None:
    value = average_precision(relevant)
    assert 0 <= value <= 1
    assert average_precision(sorted(relevant, reverse=True)) == (1.0 if any(relevant) else 0.0)


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 10))
def test_f_beta_lies_between_its_parts(precision: float, recall: float, beta: float) -> None:
    value = f_beta(precision=precision, recall=recall, beta=beta)
    assert min(precision, recall) - 1e-9 <= value <= max(precision, recall) + 1e-9


@given(st.data(), st.integers(1, 5), st.integers(1, 4), st.integers(1, 4))
def test_noise_shares_never_count_a_claim_twice(
    data: st.DataObject, claims: int, statements: int, passages: int
) -> None:
    def matrix(width: int) -> list[list[bool]]:
        row = st.lists(st.booleans(), min_size=width, max_size=width)
        return data.draw(st.lists(row, min_size=passages, max_size=passages))

    wrong = data.draw(st.lists(st.booleans(), min_size=claims, max_size=claims))
    relevant, irrelevant = noise_sensitivity(
        wrong=wrong, supports_response=matrix(claims), supports_reference=matrix(statements)
    )
    assert relevant + irrelevant <= sum(wrong) / claims + 1e-12


@settings(max_examples=200)
@given(ODD)
def test_the_refusal_rules_take_any_text(text: str) -> None:
    assert noncommittal(text).label in ("yes", "no", "unsure")

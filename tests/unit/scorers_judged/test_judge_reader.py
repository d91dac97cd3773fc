"""The reader on every malformed reply that users of the peers reported, and more."""

from __future__ import annotations

import pytest

from scorers.judge.reader import AMBIGUOUS, read_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ('```json\n{"a": [1, 2,],}\n```', {"a": [1, 2]}),
        ('Sure! Here it is:\n{"a": "x"}\nHope this helps.', {"a": "x"}),
        ("{'a': 'it's', 'b': True, 'c': None}", {"a": "it's", "b": True, "c": None}),
        ("{a: yes, b: 2}", {"a": "yes", "b": 2}),
        ('{"a": "x"\n "b": "y"}', {"a": "x", "b": "y"}),
        (
            '{"reason": "it says "5 days" there", "label": "no"}',
            {"reason": 'it says "5 days" there', "label": "no"},
        ),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('<think>{"a": 0} or {"a": 2}?</think>\n{"a": 1}', {"a": 1}),
        ('{"a": 1e2, "b": -0.5,}', {"a": 100.0, "b": -0.5}),
        ('{"a": "\\u00e9\\n",}', {"a": "é\n"}),
        ("\ufeff{'a': 1}", {"a": 1}),
    ],
)
def test_reads_what_is_whole(text: str, value: object) -> None:
    assert read_json(text, expected=["a"]).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            '{"a": {"1": {"label": "yes"}, "2": {"reason": "abc", "la',
            {"a": {"1": {"label": "yes"}, "2": {"reason": "abc"}}},
        ),
        ('["whole", "cut o', ["whole"]),
        ('{"a": 12', {}),
        ('{"a": "x", "b', {"a": "x"}),
        ('{"a": ["x", ', {"a": ["x"]}),
    ],
)
def test_drops_the_element_that_was_cut(text: str, value: object) -> None:
    reading = read_json(text, expected=["a"])
    assert reading.value == value
    assert reading.cut


def test_a_key_with_two_values_is_ambiguous() -> None:
    assert read_json('{"a": 1, "a": 2}').value == {"a": AMBIGUOUS}
    assert read_json("{'a': 1, 'a': 2}").value == {"a": AMBIGUOUS}
    assert read_json('{"a": 1, "a": 1}').value == {"a": 1}


def test_takes_the_object_with_the_expected_keys_and_the_last_of_equals() -> None:
    text = 'In [1] it says {"x": 1}. First {"a": "quoted"}, but my answer is {"a": "mine"}. See {"y": 2}.'
    assert read_json(text, expected=["a"]).value == {"a": "mine"}


@pytest.mark.parametrize("text", ["", "I can not judge this.", "null", "}{", "]["])
def test_finds_nothing_where_there_is_nothing(text: str) -> None:
    assert not read_json(text, expected=["a"]).value


def test_says_whether_it_mended() -> None:
    assert not read_json('{"a": 1}').repaired
    assert read_json('x {"a": 1}').repaired


def test_thoughts_in_letters_that_grow_when_they_are_lowered_cut_nothing_off() -> None:
    text = f'<think>{"İ" * 40} {{"a": "draft"}}</Think>{{"a": {{"label": "yes"}}}} done'
    assert read_json(text, expected=["a"]).value == {"a": {"label": "yes"}}

"""Whatever is around them, planted values are gone from every text, and equal ones stay equal."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from collector.extract.redaction import Redactor
from collector.extract.redaction_detect import Detector
from collector.extract.redaction_numbers import luhn
from collector.extract.redaction_options import Personal, RedactionOptions
from collector.records.found import Found
from scorers.interaction import Interaction, Passage, Turn

REDACTOR = Redactor(RedactionOptions(), seed="property")
DETECTOR = Detector(tuple(Personal), ())


def _card(number: int) -> str:
    digits = f"4{number:014d}"
    return next(f"{digits}{one}" for one in range(10) if luhn(f"{digits}{one}"))


def _grouped(digits: str, mark: str) -> str:
    return mark.join(digits[place : place + 4] for place in range(0, len(digits), 4))


letters = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8)
emails = st.builds(lambda a, b, c: f"{a}.{b}@{c}.example", letters, letters, letters)
cards = st.builds(
    lambda n, mark: _grouped(_card(n), mark), st.integers(1, 10**14 - 1), st.sampled_from(["", " ", "-"])
)
keys = st.builds(lambda one: f"sk-{one}", st.text("abcdefghijklmnop0123456789", min_size=20, max_size=60))
phones = st.builds(lambda n: f"+49 30 {n}", st.integers(1_000_000, 9_999_999))
addresses = st.builds(lambda a, b: f"198.51.{a}.{b}", st.integers(0, 255), st.integers(0, 255))
secrets = st.one_of(emails, cards, keys, phones, addresses)
# What stands beside a value: not a letter, digit or mark that could belong to it.
beside = st.sampled_from(
    [" ", ", ", "; ", " (", ") ", "\n", " – ", "“", "”", " 和 ", " است ", "\t", " <b>", "\u2028"]
)
words = st.text(st.characters(blacklist_categories=["Nd", "Cs"], blacklist_characters="+@.:/%-_'\\"), max_size=30)


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A text with values in it, and the values."""
    values = draw(st.lists(secrets, min_size=1, max_size=4))
    parts = []
    for value in values:
        parts += [draw(words), draw(beside), value, draw(beside)]
    return "".join([*parts, draw(words)]), values


@settings(max_examples=150, deadline=None)
@given(planted(), planted(), planted())
def test_no_planted_value_is_left(
    question: tuple[str, list[str]], context: tuple[str, list[str]], answer: tuple[str, list[str]]
) -> None:
    repeated = f"{answer[0]} {context[1][0]} "
    found = Found(
        Interaction(
            "i",
            question=question[0],
            contexts=(Passage(context[0], id=context[1][0], metadata={"a": [context[0]]}),),
            response=repeated,
            history=(Turn("user", question[0]),),
        ),
        attributes={"x": answer[0]},
    )
    redacted = REDACTOR.redact(found)
    shown = repr(redacted)
    for value in (*question[1], *context[1], *answer[1]):
        assert value not in shown
    assert redacted.interaction.history[0].text == redacted.interaction.question
    assert REDACTOR.redact(redacted) == redacted  # placeholders are nothing personal


@settings(max_examples=150, deadline=None)
@given(secrets, words, words)
def test_equal_values_are_equal_afterwards(value: str, before: str, behind: str) -> None:
    found = Found(Interaction("i", question=f"{before} {value}", response=f"{value} {behind}"))
    interaction = REDACTOR.redact(found).interaction
    assert interaction.question is not None
    assert interaction.response is not None
    placeholder = interaction.response.split("]")[0] + "]"
    assert interaction.question.endswith(placeholder)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=400) | st.text("0123456789 +-./()@:abAZ_", max_size=400))
def test_any_text_is_taken_and_hits_are_apart(text: str) -> None:
    hits = DETECTOR.hits(text)
    end = 0
    for hit in hits:
        assert end <= hit.start < hit.end <= len(text)
        end = hit.end
    found = replace(Found(Interaction("i")), interaction=Interaction("i", question=text))
    again = REDACTOR.redact(REDACTOR.redact(found))
    assert again == REDACTOR.redact(found)

"""What must hold for local scorers whatever the text is."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scorers.interaction import Interaction, Passage
from scorers.local import DEFAULT, build
from scorers.local.encoder import ModelMissing
from scorers.outcome import Score
from scorers.scorer import LocalScorer, Tier

SUPPORT = ("faithfulness", "groundedness")
FAST = dict(zip(DEFAULT, build(), strict=True))

_PIECES = (
    "The X200 has a warranty of 24 months.",
    "Returns are free for customers in Germany.",
    "Maria Lopez paid $3.5 million on 5 March 2020.",
    "It is not allowed to smoke.",
    "Smoking is allowed outside.",
    "I love bees!",
    "출장비는 하루 5만원입니다.",
    "환불은 되지 않습니다.",
    "私は学生です。",
    "价格是3.5万元。",
    "Das kostet z.B. 3,5 Mio. Euro.",
    "See [1] and [2].",
    "1. item",
    "...",
    "12,345 km",
)
pieces = st.lists(st.one_of(st.sampled_from(_PIECES), st.text(max_size=60)), min_size=0, max_size=5)
texts = pieces.map(" ".join)
passages = st.lists(texts, min_size=0, max_size=4).map(lambda found: tuple(Passage(text) for text in found))


@st.composite
def interactions(draw: st.DrawFn) -> Interaction:
    return Interaction("x", draw(texts), draw(passages), draw(texts))


def value(scorer: LocalScorer, interaction: Interaction) -> float | None:
    ((result,),) = scorer.score([interaction])
    return result.outcome.value if isinstance(result.outcome, Score) else None


@pytest.mark.parametrize("name", SUPPORT)
@settings(deadline=None, max_examples=100)
@given(interaction=interactions(), place=st.integers(0, 10), appended=st.booleans())
def test_adding_the_responses_own_sentence_never_lowers_support(
    name: str, interaction: Interaction, place: int, appended: bool
) -> None:
    response, contexts = interaction.response or "", interaction.contexts or ()
    own = response.splitlines()[place % len(response.splitlines())] if response.splitlines() else response
    if appended and contexts:
        more = (*contexts[:-1], Passage(f"{contexts[-1].text}\n{own}"))
    else:
        more = (*contexts, Passage(own))
    before, after = value(FAST[name], interaction), value(FAST[name], replace(interaction, contexts=more))
    if after is None:  # only where there was nothing to compare with, and now there is, in another script
        assert before in (None, 0.0)
    elif before is not None:
        assert after >= before - 1e-9


@pytest.mark.parametrize("name", [*SUPPORT, "context_relevance"])
@settings(deadline=None, max_examples=100)
@given(interaction=interactions())
def test_emptying_the_contexts_never_raises_the_score(name: str, interaction: Interaction) -> None:
    before = value(FAST[name], interaction)
    after = value(FAST[name], replace(interaction, contexts=()))
    assert after is None or after == 0.0
    assert before is None or after is None or after <= before


@pytest.mark.parametrize("name", [*SUPPORT, "context_relevance", "passage_relevance"])
@settings(deadline=None, max_examples=100)
@given(interaction=interactions(), seed=st.integers(0, 100))
def test_the_order_of_passages_does_not_matter(name: str, interaction: Interaction, seed: int) -> None:
    mixed = list(interaction.contexts or ())
    random.Random(seed).shuffle(mixed)
    before, after = value(FAST[name], interaction), value(FAST[name], replace(interaction, contexts=tuple(mixed)))
    assert (before is None) == (after is None)
    assert before == pytest.approx(after, abs=1e-12)


@settings(deadline=None, max_examples=80)
@given(batch=st.lists(interactions(), min_size=1, max_size=4))
def test_scores_are_in_bounds_one_list_each_and_nothing_raises(batch: list[Interaction]) -> None:
    for scorer in FAST.values():
        results = scorer.score(batch)
        assert [len(one) for one in results] == [1] * len(batch)
        for (result,), interaction in zip(results, batch, strict=True):
            assert result.interaction_id == interaction.id
            if isinstance(result.outcome, Score):
                assert 0.0 <= result.outcome.value <= 1.0


@settings(deadline=None, max_examples=25)
@given(batch=st.lists(interactions(), min_size=2, max_size=8), size=st.integers(1, 4))
def test_scores_do_not_depend_on_the_batch(batch: list[Interaction], size: int) -> None:
    for scorer in FAST.values():
        whole = [result.outcome for (result,) in scorer.score(batch)]
        copies = [replace(one) for one in batch]
        parts = [
            result.outcome
            for start in range(0, len(copies), size)
            for (result,) in scorer.score(copies[start : start + size])
        ]
        assert whole == parts


def test_full_tier_scores_do_not_depend_on_the_batch_either() -> None:
    rng = random.Random(3)
    english = [piece for piece in _PIECES if piece.isascii()]
    batch = [
        Interaction(
            str(number),
            rng.choice(english),
            tuple(Passage(" ".join(rng.choices(english, k=rng.randint(1, 6)))) for _ in range(3)),
            " ".join(rng.choices(english, k=2)),
        )
        for number in range(12)
    ]
    try:
        together, apart = (
            build(("faithfulness", "groundedness", "context_relevance", "response_relevancy"), Tier.FULL)
            for _ in range(2)
        )
    except ModelMissing:
        pytest.skip("the extra [local] is not installed")
    for one, other in zip(together, apart, strict=True):
        whole = [result.outcome for (result,) in one.score(batch)]
        single = [other.score([interaction])[0][0].outcome for interaction in batch]
        for left, right in zip(whole, single, strict=True):
            if isinstance(left, Score):
                assert isinstance(right, Score) and left.value == pytest.approx(right.value, abs=1e-4)
            else:
                assert left == right


HOSTILE = {
    "no spaces": "a" * 100_000,
    "hangul": "가나다라" * 25_000,
    "surrogates and bidi": "\ud800\u202eabc\x00 " * 14_000,
    "sentences": "He is 5. " * 11_000,
    "quotes": 'He said "yes. (No "maybe. ' * 4_000,
    "citations": "[1]" * 33_000,
    "one character lines": "x\n" * 50_000,
}


def spent_on(text: str) -> float:
    """CPU seconds of all scorers on an interaction whose every part is this text."""
    interaction = Interaction("h", text, (Passage(text), Passage(text[: len(text) // 2])), text)
    started = time.process_time()
    for scorer in FAST.values():
        ((result,),) = scorer.score([interaction])
        assert result.interaction_id == "h"
    return time.process_time() - started


@pytest.fixture(scope="module")
def fair() -> float:
    """The same for ordinary text of the same length."""
    return spent_on("The hotel is paid by the company for up to three nights. " * 1_750)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_scored_in_bounded_time(name: str, fair: float) -> None:
    assert spent_on(HOSTILE[name]) < 20 * fair

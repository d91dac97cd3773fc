"""What a worker does with a batch: extraction, fast scorers, and the probabilities that go with them."""

from __future__ import annotations

import pickle
from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from collector.records.found import Found, Mark
from collector.records.trace import Release, ReleasedTrace
from collector.screening.options import Options
from collector.screening.screen import WITHOUT_RETRIEVAL, Screen, handler
from collector.screening.shares import place_in_unit
from scorers.interaction import Damage, Field, Interaction, Passage
from scorers.local import DEFAULT
from scorers.local.encoder import ModelMissing
from scorers.outcome import Failed, FailedReason, NotApplicable, NotApplicableReason, Result, Score
from scorers.scorer import Kind, Tier


def rag(name: str = "i") -> Interaction:
    return Interaction(
        name,
        "How long is the warranty of the X200?",
        (Passage("The X200 has a warranty of 24 months."),),
        "The X200 has a warranty of 24 months.",
    )


def by_name(results: Sequence[Result]) -> dict[str, Result]:
    return {result.scorer: result for result in results}


@pytest.fixture(scope="module")
def screen() -> Screen:
    return Screen(Options())


def test_a_rag_interaction_gets_every_scorer_once(screen: Screen) -> None:
    (one,) = screen.screen([Found(rag())])
    assert [result.scorer for result in one.results] == list(DEFAULT)
    assert all(result.kind is Kind.LOCAL and result.tier is Tier.FAST for result in one.results)
    faithful = by_name(one.results)["faithfulness"].outcome
    assert isinstance(faithful, Score) and faithful.value > 0.8


def test_a_chat_gets_only_what_applies(screen: Screen) -> None:
    chat = Found(Interaction("c", "Hello, how are you?", None, "I am fine."), marks=frozenset({Mark.NOT_RAG}))
    (one,) = screen.screen([chat])
    assert {result.scorer for result in one.results} == WITHOUT_RETRIEVAL


def test_own_evaluations_are_not_scored(screen: Screen) -> None:
    (one,) = screen.screen([Found(rag(), marks=frozenset({Mark.OWN_EVALUATION}))])
    assert one.results == ()


def test_damaged_contexts_fail_what_needs_them(screen: Screen) -> None:
    cut = Interaction("d", "q?", None, "An answer.", damage={Field.CONTEXTS: Damage.HIDDEN})
    (one,) = screen.screen([Found(cut)])
    results = by_name(one.results)
    for name in ("faithfulness", "groundedness", "context_relevance"):
        outcome = results[name].outcome
        assert isinstance(outcome, Failed) and outcome.reason is FailedReason.INCOMPLETE
    incomplete = results["context_incomplete"].outcome
    assert isinstance(incomplete, Score) and incomplete.value == 1.0


def test_an_application_error_is_no_missing_answer(screen: Screen) -> None:
    broken = Found(Interaction("e", "q?", (Passage("text"),), None), marks=frozenset({Mark.APPLICATION_ERROR}))
    (one,) = screen.screen([broken])
    outcome = by_name(one.results)["faithfulness"].outcome
    assert outcome == NotApplicable(NotApplicableReason.APPLICATION_ERROR)
    assert isinstance(by_name(one.results)["context_count"].outcome, Score)


def test_a_failed_call_is_told_of_scorers_that_only_the_full_tier_runs() -> None:
    pytest.importorskip("onnxruntime", reason="the extra [local] is not installed")
    both = Screen(Options(scorers=("context_count",), full_rate=1.0, full_scorers=("faithfulness",)))
    broken = Found(Interaction("e", "q?", (Passage("text"),), None), marks=frozenset({Mark.APPLICATION_ERROR}))
    (one,) = both.screen([broken])
    outcome = by_name(one.results)["faithfulness"].outcome
    assert outcome == NotApplicable(NotApplicableReason.APPLICATION_ERROR)


def released(name: str, kept: float = 1.0) -> ReleasedTrace:
    return ReleasedTrace(name, (), (), Release.QUIET, True, 0, kept_probability=kept)


def test_the_handler_keeps_traces_apart_and_survives_odd_ones(
    screen: Screen, caplog: pytest.LogCaptureFixture
) -> None:
    def examine(trace: ReleasedTrace) -> tuple[Sequence[Found], str, int]:
        if trace.trace_id == "odd":
            raise ValueError("not a span")
        if trace.trace_id == "none":
            return (), "nothing", 0
        return [Found(rag(f"{trace.trace_id}-{number}")) for number in range(2)], "interactions", 0

    handle = handler(examine, screen)
    examined = handle([released("a", 0.25), released("odd"), released("none"), released("b")])
    assert [one.seen for one in examined] == ["interactions", "error", "nothing", "interactions"]
    assert [one.found.interaction.id for one in examined[0].screened] == ["a-0", "a-1"]
    assert {one.probability for one in examined[0].screened} == {0.25}
    assert {one.probability for one in examined[3].screened} == {1.0}
    assert pickle.loads(pickle.dumps(examined)) == examined
    handle([released("odd")])
    assert caplog.text.count("could not be examined") == 1
    assert "ValueError at test_screen.py" in caplog.text and "not a span" not in caplog.text


def test_unknown_scorers_are_refused_by_name() -> None:
    with pytest.raises(ValidationError, match="faithfulnes"):
        Options(scorers=("faithfulnes",))
    with pytest.raises(ValidationError, match="twice"):
        Options(scorers=("citations", "citations"))


def test_a_hashed_share_gets_the_full_tier_too_with_its_probability() -> None:
    try:
        both = Screen(Options(full_rate=0.5, full_scorers=("faithfulness",), scorers=("faithfulness",)))
    except ModelMissing:
        pytest.skip("the extra [local] is not installed")
    many = [Found(rag(f"interaction-{number}")) for number in range(40)]
    screened = both.screen(many)
    chosen = [one for one in screened if len(one.results) == 2]
    assert 5 < len(chosen) < 35
    for one in screened:
        fast = one.results[0]
        assert (fast.tier, fast.probability) == (Tier.FAST, 1.0)
        assert (len(one.results) == 2) == (place_in_unit("screening.full", one.found.interaction.id) < 0.5)
    for one in chosen:
        assert (one.results[1].tier, one.results[1].probability) == (Tier.FULL, 0.5)


def test_the_places_of_names_are_uniform_and_differ_between_salts() -> None:
    places = [place_in_unit("a", str(number)) for number in range(4000)]
    assert all(0 <= place < 1 for place in places)
    assert sum(place < 0.1 for place in places) == pytest.approx(400, abs=80)  # 4 standard deviations
    assert sum(place_in_unit("b", str(n)) < 0.5 for n in range(4000) if places[n] < 0.5) == pytest.approx(
        1000, abs=150
    )

"""Each local scorer: its rules, its evidence, and what it leaves unscored."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest

from scorers.errors import BadScorerOptions, UnknownScorer
from scorers.interaction import Damage, Field, Interaction, Passage
from scorers.local import DEFAULT, build
from scorers.outcome import Failed, FailedReason, Label, NotApplicable, NotApplicableReason, Result, Score
from scorers.scorer import Kind, LocalScorer, Tier
from tests.unit.scorers_local.conftest import Ask

WARRANTY = Interaction(
    "warranty",
    "How long is the warranty of the X200?",
    (
        Passage("The X200 has a warranty of 24 months. Returns are free for customers in Germany.", id="doc-a"),
        Passage("Our office is in Berlin. Maria Lopez leads it."),
    ),
    "The X200 has a warranty of 24 months.",
)
KOREAN = Interaction(
    "hotel",
    "국내 출장 숙박비 한도는 얼마인가요?",
    (Passage("국내 출장 숙박비 한도는 1박에 10만원이다. 해외 출장은 15만원이다."),),
    "국내 출장 숙박비 한도는 1박에 10만원이다.",
)
SUPPORT = ("faithfulness", "groundedness")


def value(result: Result) -> float:
    assert isinstance(result.outcome, Score), result.outcome
    return result.outcome.value


def reason(result: Result) -> object:
    assert isinstance(result.outcome, NotApplicable | Failed), result.outcome
    return result.outcome.reason


@pytest.mark.parametrize("name", SUPPORT)
@pytest.mark.parametrize("base", [WARRANTY, KOREAN], ids=["english", "korean"])
def test_a_copied_answer_is_supported_and_a_foreign_one_is_not(ask: Ask, name: str, base: Interaction) -> None:
    other = KOREAN if base is not KOREAN else Interaction("w", contexts=(Passage("연차 휴가는 매년 15일입니다."),))
    if base is WARRANTY:
        other = Interaction("o", contexts=(Passage("Bees are insects that make honey in their hives."),))
    assert value(ask(name, base)) > 0.7
    assert value(ask(name, replace(base, contexts=other.contexts))) < 0.2


@pytest.mark.parametrize(
    ("response", "kind", "missing"),
    [
        ("The X200 has a warranty of 36 months.", "numbers", "36 months"),
        ("The X200 has a warranty of 24 days.", "units", "24 days"),
        ("The warranty of Peter Miller covers 24 months.", "names", "Miller"),
        ("The X200 has a warranty since 5 March.", "numbers", "5 March"),
    ],
)
def test_evidence_names_what_the_contexts_do_not_have(ask: Ask, response: str, kind: str, missing: str) -> None:
    changed = replace(WARRANTY, response=response)
    result = ask("faithfulness", changed)
    (sentence,) = result.evidence["sentences"]  # type: ignore[misc,attr-defined]  # evidence is JSON-ready data
    assert missing in sentence["missing"][kind]
    assert sentence["nearest"] == {"passage": 0, "text": "The X200 has a warranty of 24 months."}
    assert value(result) < value(ask("faithfulness", WARRANTY)) - 0.2
    assert result.verdicts[0].label is Label.UNSUPPORTED or kind == "names"


def test_a_denial_of_the_nearest_sentence_is_shown_and_lowers_support(ask: Ask) -> None:
    denied = replace(WARRANTY, response="The X200 has not a warranty of 24 months.")
    result = ask("faithfulness", denied)
    (sentence,) = result.evidence["sentences"]  # type: ignore[misc,attr-defined]  # evidence is JSON-ready data
    assert sentence["denial_differs"] is True
    assert value(result) < value(ask("faithfulness", WARRANTY))


def test_faithfulness_is_the_mean_and_groundedness_minds_the_weakest(ask: Ask) -> None:
    mixed = replace(
        WARRANTY, response="The X200 has a warranty of 24 months. Napoleon crossed the Alps with 40 elephants."
    )
    result = ask("faithfulness", mixed)
    first, second = result.evidence["sentences"]  # type: ignore[misc,attr-defined]  # evidence is JSON-ready data
    assert value(result) == pytest.approx((first["support"] + second["support"]) / 2, abs=1e-4)
    assert [verdict.label for verdict in result.verdicts] == [Label.SUPPORTED, Label.UNSUPPORTED]
    grounded = ask("groundedness", mixed)
    assert value(grounded) < value(result)
    assert grounded.evidence["weakest"]["text"].startswith("Napoleon")  # type: ignore[index,call-overload]  # as above


def test_citation_marks_and_list_marks_are_no_numbers_of_the_answer(ask: Ask) -> None:
    marked = replace(WARRANTY, response="1. The X200 has a warranty of 24 months [1].")
    assert value(ask("faithfulness", marked)) == pytest.approx(value(ask("faithfulness", WARRANTY)))


@pytest.mark.parametrize("name", [*SUPPORT, "context_relevance"])
def test_no_contexts_is_zero_by_code(ask: Ask, name: str) -> None:
    for contexts in ((), (Passage(" "), Passage("..."))):
        result = ask(name, replace(WARRANTY, contexts=contexts))
        assert result.outcome == Score(0.0, label="no_contexts")


@pytest.mark.parametrize("name", [*SUPPORT, "response_relevancy"])
@pytest.mark.parametrize("response", ["I'm sorry, I don't know.", "죄송하지만 해당 내용을 찾을 수 없습니다."])
def test_refusals_are_unscored_also_without_contexts(ask: Ask, name: str, response: str) -> None:
    for contexts in (WARRANTY.contexts, ()):
        refused = replace(WARRANTY, response=response, contexts=contexts)
        assert reason(ask(name, refused)) is NotApplicableReason.REFUSAL


def test_unknown_and_damaged_parts(ask: Ask) -> None:
    unknown = replace(WARRANTY, contexts=None)
    assert reason(ask("faithfulness", unknown)) is NotApplicableReason.NO_CONTEXTS
    assert reason(ask("response_relevancy", replace(WARRANTY, question=None))) is NotApplicableReason.NO_QUESTION
    assert reason(ask("groundedness", replace(WARRANTY, response=None))) is NotApplicableReason.NO_RESPONSE
    damaged = replace(unknown, damage={Field.CONTEXTS: Damage.TRUNCATED})
    assert reason(ask("faithfulness", damaged)) is FailedReason.INCOMPLETE
    assert isinstance(ask("response_relevancy", damaged).outcome, Score)


def test_an_answer_in_another_script_is_not_compared(ask: Ask) -> None:
    crossed = replace(KOREAN, contexts=WARRANTY.contexts)
    for name in (*SUPPORT, "context_relevance"):
        assert reason(ask(name, crossed)) is NotApplicableReason.LANGUAGE
    assert reason(ask("response_relevancy", replace(WARRANTY, response=KOREAN.response))) is (
        NotApplicableReason.LANGUAGE
    )


def test_context_relevance_takes_the_best_passage_and_passage_relevance_the_mean(ask: Ask) -> None:
    best, mean = ask("context_relevance", WARRANTY), ask("passage_relevance", WARRANTY)
    passages = best.evidence["passages"]
    assert passages == mean.evidence["passages"]
    assert isinstance(passages, list)
    assert best.evidence["passage"] == 0
    assert value(best) == pytest.approx(passages[0], abs=1e-4) and passages[0] > 0.7 > 0.3 > passages[1]
    assert value(mean) == pytest.approx(sum(passages) / 2, abs=1e-4)


def test_a_passage_that_repeats_the_question_is_worth_nothing(ask: Ask) -> None:
    echoed = replace(WARRANTY, contexts=(Passage("the warranty of the X200"),))
    assert value(ask("context_relevance", echoed)) == 0.0


def test_response_relevancy_tells_an_answer_from_small_talk(ask: Ask) -> None:
    assert value(ask("response_relevancy", WARRANTY)) > 0.7
    assert value(ask("response_relevancy", replace(WARRANTY, response="Bees make honey in summer."))) < 0.3


@pytest.mark.parametrize(
    ("response", "label", "expected"),
    [("I don't know.", "yes", 1.0), ("24 months.", "no", 0.0), ("It depends.", "unsure", 0.0)],
)
def test_noncommittal(ask: Ask, response: str, label: str, expected: float) -> None:
    result = ask("noncommittal", replace(WARRANTY, response=response))
    assert result.outcome == Score(expected, label=label)
    assert ("unsure" in result.flags) == (label == "unsure")


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("The X200 has a warranty of 24 months [1].", [("[1]", 0, None)]),
        ("The X200 has a warranty of 24 months. [1] Maria Lopez leads the office [2].",
         [("[1]", 0, None), ("[2]", 1, None)]),
        ("The X200 has a warranty of 24 months [2].", [("[2]", 1, "not_supported")]),
        ("The X200 has a warranty of 24 months [7].", [("[7]", None, "no_such_passage")]),
        ("The X200 has a warranty of 24 months [doc-a].", [("[doc-a]", 0, None)]),
        ("The X200 has a warranty of 24 months (source 1).", [("(source 1)", 0, None)]),
        ("The X200 has a warranty of 24 months【1†source】.", [("【1†source】", 0, None)]),
        ("The X200 has a warranty of 24 months [0]. Maria Lopez leads it [1].",
         [("[0]", 0, None), ("[1]", 1, None)]),
        ("The X200 has a warranty of 24 months [1-2].",
         [("[1-2]", 0, None), ("[1-2]", 1, "not_supported")]),
    ],
)  # fmt: skip
def test_citations(ask: Ask, response: str, expected: list[tuple[str, int | None, str | None]]) -> None:
    result = ask("citations", replace(WARRANTY, response=response))
    listed = result.evidence["citations"]
    assert isinstance(listed, list)
    assert [(one["marker"], one["passage"], one["problem"]) for one in listed] == expected
    fine = sum(problem is None for _, _, problem in expected)
    assert value(result) == pytest.approx(fine / len(expected))


@pytest.mark.parametrize(
    ("ids", "response", "cited"),
    [
        (("0", "1"), "Maria Lopez leads the office [1].", [1]),  # the id, not the first
        (("1", "2"), "The X200 has a warranty of 24 months [1].", [0]),  # counted once
        (("2", "1"), "The X200 has a warranty of 24 months [2] [1, 2].", [0, 1, 0]),
        (("doc 7", "8"), "The X200 has a warranty of 24 months [doc 7].", [0]),
        (("17", "18"), "The X200 has a warranty of 24 months [2].", [1]),
        (("1234", "b"), "The X200 has a warranty of 24 months. [1234] [2] Bees fly.", [0, 1]),
    ],
)
def test_a_marker_that_is_an_id_means_that_passage_and_counts_once(
    ask: Ask, ids: tuple[str, str], response: str, cited: list[int]
) -> None:
    assert WARRANTY.contexts is not None
    contexts = tuple(replace(passage, id=own) for passage, own in zip(WARRANTY.contexts, ids, strict=False))
    listed = ask("citations", replace(WARRANTY, contexts=contexts, response=response)).evidence["citations"]
    assert isinstance(listed, list)
    assert [one["passage"] for one in listed] == cited


def test_markers_after_a_full_stop_all_belong_to_the_sentence_before(ask: Ask) -> None:
    result = ask(
        "citations", replace(WARRANTY, response="The X200 has a warranty of 24 months. [1] [doc-a] Bees fly.")
    )
    assert value(result) == 1.0


def test_years_in_brackets_are_no_citations(ask: Ask) -> None:
    for response in ("Published (19).", "In 1998 it began.", "No marker."):
        assert reason(ask("citations", replace(WARRANTY, response=response))) is NotApplicableReason.NO_CLAIMS


def test_language_match(ask: Ask) -> None:
    assert value(ask("language_match", WARRANTY)) == 1.0
    assert value(ask("language_match", replace(WARRANTY, response=KOREAN.response))) == 0.0
    assert reason(ask("language_match", replace(WARRANTY, response="42"))) is NotApplicableReason.LANGUAGE


def test_context_duplication_and_count(ask: Ask) -> None:
    first, second = WARRANTY.contexts or ()
    doubled = replace(WARRANTY, contexts=(first, second, replace(first, text=first.text + " Yes."), second))
    result = ask("context_duplication", doubled)
    assert value(result) == 0.5
    assert result.evidence["repeats"] == [{"passage": 2, "repeats": 0}, {"passage": 3, "repeats": 1}]
    assert value(ask("context_duplication", WARRANTY)) == 0.0
    assert ask("context_count", doubled).outcome == Score(1.0, raw=4.0)
    assert ask("context_count", replace(WARRANTY, contexts=())).outcome == Score(0.0, raw=0.0)


def test_context_incomplete(ask: Ask) -> None:
    assert value(ask("context_incomplete", WARRANTY)) == 0.0
    hidden = replace(WARRANTY, contexts=None, damage={Field.CONTEXTS: Damage.HIDDEN})
    assert ask("context_incomplete", hidden).outcome == Score(1.0, label="hidden")
    for text in (
        "The X200 has a…",
        "The X200 has a... ",
        "The X200 [truncated]",
        "The X200 (truncated 300 chars)",
    ):
        cut = replace(WARRANTY, contexts=(Passage("whole."), Passage(text)))
        assert ask("context_incomplete", cut).outcome == Score(1.0, label="cut_mark")
    assert reason(ask("context_incomplete", replace(WARRANTY, contexts=None))) is NotApplicableReason.NO_CONTEXTS


def test_results_say_what_made_them_and_are_json(ask: Ask) -> None:
    for name in DEFAULT:
        result = ask(name, WARRANTY)
        assert (result.scorer, result.kind, result.tier) == (name, Kind.LOCAL, Tier.FAST)
        assert result.fingerprint.startswith(f"local:{name}/")
        json.dumps(asdict(result)["evidence"])
    assert "table-" in ask("faithfulness", WARRANTY).fingerprint
    assert "table-" not in ask("context_count", WARRANTY).fingerprint


def test_over_long_texts_are_cut_and_flagged(ask: Ask) -> None:
    long = replace(WARRANTY, response="The X200 has a warranty of 24 months. " * 200)
    result = ask("faithfulness", long)
    assert "cut" in result.flags and result.evidence["sentence_count"] == 100
    assert "cut" not in ask("context_count", long).flags
    assert "cut" in ask("faithfulness", replace(WARRANTY, contexts=(Passage("x"),) * 501)).flags


def test_build_names_what_is_wrong() -> None:
    with pytest.raises(UnknownScorer, match="no local scorer is called 'truth'"):
        build(["truth"])
    with pytest.raises(ValueError, match="huge"):
        build(tier="huge")
    assert all(isinstance(scorer, LocalScorer) for scorer in build(["citations", "faithfulness"]))


def test_a_table_of_other_features_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = tmp_path_factory.mktemp("table") / "table.json"
    for text, message in (
        ("{", "not a calibration table"),
        ('{"format": 9}', "form 9 is not 1"),
        ('{"format": 1, "version": "x", "fitted_on": [], "models": {}}', "no model 'support.fast'"),
        (
            '{"format": 1, "version": "x", "fitted_on": [], "models": {"support.fast": '
            '{"features": ["a"], "coefficients": [1.0], "intercept": 0}}}',
            "other features",
        ),
        (
            '{"format": 1, "version": "x", "fitted_on": [], "models": {"support.fast": '
            '{"features": ["a"], "coefficients": [1.0, 2.0], "intercept": 0}}}',
            "one finite coefficient",
        ),
    ):
        place.write_text(text)
        with pytest.raises(BadScorerOptions, match=message):
            build(table=place)
    with pytest.raises(BadScorerOptions, match="check the path"):
        build(table=place.with_name("absent.json"))

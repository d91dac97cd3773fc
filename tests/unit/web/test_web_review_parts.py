"""The parts of the review pages that compute: where claims stand, what a form means, what a query string means."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from pydantic import ValidationError

from collector.review.case import Reason
from collector.review.labels import BadLabel, Draft, Label, LabelKind, in_effect
from collector.review.query import Sort
from collector.web.inert import visible
from collector.web.review.filters import read
from collector.web.review.forms import drafts, held
from collector.web.review.highlight import MAX_CLAIMS, segments
from collector.web.review.lists import QUEUE, Working
from collector.web.review.shown import CUT_CHARS, CUT_ITEMS, case_page
from scorers.interaction import Passage, Turn
from scorers.outcome import Label as VerdictLabel
from scorers.outcome import Verdict
from tests.support.review_pages import scored, warranty

RESPONSE = "The warranty lasts two years. Water   damage is\ncovered, and drops are too. Call us."


def _at(response: str, *claims: tuple[str, VerdictLabel]) -> list[tuple[str, tuple[int, ...], str | None]]:
    return [(one.text, one.claims, one.label) for one in segments(response, claims)]


def test_a_claim_stands_where_its_words_are() -> None:
    found = _at(RESPONSE, ("water damage is covered", VerdictLabel.CONTRADICTED))
    assert ("Water   damage is\ncovered", (0,), "contradicted") in found


def test_a_restated_claim_stands_in_the_sentence_that_shares_its_words() -> None:
    found = _at(RESPONSE, ("The warranty of the phone lasts for two years.", VerdictLabel.SUPPORTED))
    assert ("The warranty lasts two years.", (0,), "supported") in found
    assert all(claims == () for _, claims, _ in _at(RESPONSE, ("Shops open at nine.", VerdictLabel.UNSUPPORTED)))


def test_of_two_verdicts_on_one_place_the_worse_shows_and_a_claim_ends_once() -> None:
    pieces = segments(
        RESPONSE,
        [
            ("Drops and water damage are covered", VerdictLabel.SUPPORTED),
            ("drops are too", VerdictLabel.UNSUPPORTED),
        ],
    )
    both = next(one for one in pieces if one.text == "drops are too.")
    assert both.label == "unsupported"
    assert [index for one in pieces for index in one.ends].count(0) == 1


@given(
    st.text(max_size=300),
    st.lists(st.tuples(st.text(max_size=60), st.sampled_from(list(VerdictLabel))), max_size=6),
)
def test_pieces_add_up_to_the_response(response: str, claims: list[tuple[str, VerdictLabel]]) -> None:
    assert "".join(one.text for one in segments(response, claims)) == response


def test_texts_that_would_take_long_are_left_out() -> None:
    many = [(f"claim number {n} " + "word " * 500, VerdictLabel.SUPPORTED) for n in range(2000)]
    found = segments("word " * 100_000, many)
    assert "".join(one.text for one in found) == "word " * 100_000
    assert max((index for one in found for index in one.claims), default=0) < MAX_CLAIMS


def test_long_texts_and_lists_are_cut_until_all_is_asked_for() -> None:
    case = warranty(1)
    verdicts = tuple(Verdict(str(n), VerdictLabel.SUPPORTED) for n in range(90))
    long = replace(
        case,
        interaction=replace(
            case.interaction,
            response="x" * 10_000,
            contexts=tuple(Passage(f"passage {n}") for n in range(80)),
            history=tuple(Turn("user", str(n)) for n in range(70)),
        ),
        results=(scored("faithfulness", 0.5, verdicts=verdicts),),
    )
    page = case_page(long, full=False)
    assert page.cut
    assert page.response is not None
    assert (len(page.response.text), page.response.left) == (CUT_CHARS, 6_000)
    assert page.passages is not None
    assert (len(page.passages), page.left_passages) == (CUT_ITEMS, 30)
    assert (len(page.history), page.left_history, page.history[-1][1].text) == (CUT_ITEMS, 20, "69")
    assert (len(page.claims), page.left_claims) == (CUT_ITEMS, 40)
    whole = case_page(long, full=True)
    assert not whole.cut
    assert whole.response is not None
    assert whole.response.left == 0
    assert len(whole.claims) == 90


def test_passages_are_counted_as_each_scorer_counts_them() -> None:
    """Judges count from 1, as their prompts do; local scorers from 0. What does not exist is not linked."""
    case = warranty(1)
    judged = case_page(case, full=False)
    assert [claim.passages for claim in judged.claims] == [(0,), (0,), (1,), ()]
    verdicts = (Verdict("a", VerdictLabel.SUPPORTED, "", (0, 2, 3, 99)),)
    local = replace(case, results=(scored("groundedness", 0.5, "local", tier="fast", verdicts=verdicts),))
    assert case_page(local, full=False).claims[0].passages == (0, 2)


def test_local_and_judged_are_told_apart_and_repeats_are_no_results_of_their_own() -> None:
    page = case_page(warranty(1), full=False)
    assert [one.metric for one in page.judged] == ["faithfulness", "passage_relevance", "response_relevancy"]
    assert page.judged[0].attempts == (0.6,)
    assert {one.kind for one in page.local} == {"local"}
    assert [(one.metric, one.kind) for one in page.metrics] == [
        ("faithfulness", "judged"),
        ("response_relevancy", "judged"),
        ("passage_relevance", "judged"),
        ("groundedness", "local"),
    ], "one of each quality, the judge's before the local one; what only describes is none"
    assert page.passages is not None
    assert ("passage_relevance, judged", "relevant", "it is the warranty") in page.passages[0].says
    assert ("passage_relevance, local (fast)", "0.80", "") in page.passages[0].says


def test_a_form_means_what_it_adds() -> None:
    nothing = in_effect(())
    typed = {
        "agree:faithfulness": "disagree",
        "score:faithfulness": " 0,5 ",
        "claim:3:a:b": "unknown",
        "passage:0": "relevant",
        "comment": " so\r\nit is ",
        "reference": "",
        "golden": "true",
        "shown_golden": "1",
        "csrf": "x",
    }
    made = drafts(typed, nothing, "ana")
    assert made == [
        Draft(LabelKind.AGREE, "disagree", "faithfulness"),
        Draft(LabelKind.SCORE, 0.5, "faithfulness"),
        Draft(LabelKind.CLAIM, "unknown", "a:b", 3),
        Draft(LabelKind.PASSAGE, "relevant", "", 0),
        Draft(LabelKind.COMMENT, "so\nit is"),
        Draft(LabelKind.GOLDEN, True),
    ]
    given = [Label(one.kind, "ana", 1.0, 1, one.value, one.metric, one.target) for one in made]
    again = held(in_effect(given), "ana").values
    assert again["claim:3:a:b"] == "unknown"
    assert again["score:faithfulness"] == "0.5"
    assert drafts({**again, "shown_golden": "1"}, in_effect(given), "ana") == [], "what stands is not said again"
    assert drafts({"shown_golden": "1"}, in_effect(given), "ana") == [Draft(LabelKind.GOLDEN, False)]
    assert held(in_effect(given), "ben").values == {"golden": "true"}, "another's labels are not one's own"
    with pytest.raises(BadLabel, match="0 to 1"):
        drafts({"score:a": "1.5"}, nothing, "ana")


def test_a_query_string_and_its_filters_are_one_state() -> None:
    text = (
        "text=water&metric=faithfulness&score_max=0.5&segment=tenant%3Da%3Db&segment=x%3Dy&labelled=false"
        "&reason=low_score&since=2026-11-30T10%3A00%3A00Z&sort=lowest"
    )
    asked = read(parse_qsl(text))
    query = asked.query()
    assert query.segments == {"tenant": "a=b", "x": "y"}
    assert query.labelled is False
    assert query.reason is Reason.LOW_SCORE
    assert query.since_unix == 1_796_032_800
    assert query.sort is Sort.LOWEST
    assert read(parse_qsl(asked.encoded())) == asked
    paged = Working(asked.model_copy(update={"after": "abc"}))
    assert Working.of(paged.text) == paged
    assert Working.of("").text == Working.of(QUEUE).text == QUEUE
    assert read([("since", "1800000000")]).query().since_unix == 1_800_000_000
    assert read([("since", "2026-11-30")]).query().since_unix == 1_795_996_800, (
        "a date is its first instant in UTC"
    )
    for bad in (("until", "1e300"), ("score_min", "2"), ("metric", "x" * 501)):
        with pytest.raises(ValidationError):
            read([bad])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("a\r\nb", "a\nb"),
        ("\u202eevil\u202c", "[U+202E]evil[U+202C]"),
        ("\x1b[31m", "[U+001B][31m"),
        ("שלום \u200fabc", "שלום \u200fabc"),
        ("half \ud800", "half ?"),
    ],
)
def test_controls_are_named(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_what_is_no_text_passes() -> None:
    assert visible(3) == 3
    assert visible(Markup("<b>")) == Markup("<b>")

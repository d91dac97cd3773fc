"""What every review store promises, run over each of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from collector.pipeline.clock import ManualClock
from collector.records.diagnosis import Cause
from collector.review.case import Case, Feedback, Reason
from collector.review.labels import BadLabel, Draft, LabelKind
from collector.review.memory import MemoryStore
from collector.review.options import Options
from collector.review.query import BadQuery, Query, Sort, Subject, SubjectKind
from collector.review.search import FEW
from collector.review.sqlite import SqliteStore
from collector.review.store import Conflict, NoCase, NothingToUndo, ReviewStore
from collector.telemetry.instruments import Telemetry
from tests.support.review_cases import NOON, a_case, scored

Make = Callable[[], ReviewStore]
AGREE = Draft(LabelKind.AGREE, "agree", metric="faithfulness")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["sqlite", "sqlite, none listed", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[ReviewStore]:
    made: ReviewStore
    if request.param.startswith("sqlite"):
        listed = 0 if request.param.endswith("none listed") else FEW
        sqlite = SqliteStore(
            tmp_path / "review.sqlite", Options(), clock=clock, telemetry=Telemetry(), most_listed=listed
        )
        sqlite.open()
        made = sqlite
    else:
        made = MemoryStore(clock)
    yield made
    made.close()


def fill(store: ReviewStore, *cases: Case) -> None:
    for case in cases:
        assert store.put(case)
    store.flush()


def ids(store: ReviewStore, query: Query | None = None) -> list[str]:
    return [row.id for row in store.find(query or Query()).rows]


def test_a_case_comes_back_as_it_was_put(store: ReviewStore) -> None:
    case = a_case(
        scores={"faithfulness": 0.25},
        local={"faithfulness": 0.75},
        cause=Cause.UNSUPPORTED,
        reasons=(Reason.CONTROL, Reason.LOW_SCORE),
        segments={"tier": "gold"},
        marks=("streaming",),
        feedback=(Feedback(NOON, 0.0, "wrong!"),),
    )
    fill(store, case)
    held = store.get(case.id)
    assert held is not None
    assert held.stored_unix == NOON
    assert held.interaction == case.interaction
    assert (held.results, held.picks, held.feedback) == (case.results, case.picks, case.feedback)
    assert (held.decision, held.diagnosis, held.origin) == (case.decision, case.diagnosis, case.origin)
    assert (held.segments, held.marks, held.judge_model) == ({"tier": "gold"}, ("streaming",), "judge-1")
    assert (held.revision, held.labels) == (0, ())
    assert held.weight == pytest.approx(20)
    assert held.probability == 0.1
    assert held.cost_usd == pytest.approx(0.001)
    assert store.get("no such case") is None


def test_a_row_tells_what_a_list_shows(store: ReviewStore) -> None:
    fill(
        store,
        a_case(
            scores={"faithfulness": 0.25, "context_relevance": 0.5},
            local={"faithfulness": 0.1},
            cause=Cause.UNSUPPORTED,
            reasons=(Reason.CONTROL, Reason.LOW_SCORE),
            prompt_version="7",
        ),
    )
    (row,) = store.find(Query()).rows
    assert row.title == "Does the warranty cover water damage?"
    assert (row.service, row.service_version, row.prompt_version, row.model) == ("shop", "1.4", "7", "gpt-4o-mini")
    assert row.scores == {
        ("faithfulness", "judged"): 0.25,
        ("context_relevance", "judged"): 0.5,
        ("faithfulness", "local"): 0.1,
    }
    assert row.lowest == 0.25  # the judge's scores go before local ones
    assert row.reasons == (Reason.CONTROL, Reason.LOW_SCORE)
    assert (row.cause, row.probability, row.order) == ("unsupported", 0.1, 0.5)
    assert (row.revision, row.labelled, row.golden, row.skipped, row.authors) == (0, False, False, False, ())


def test_the_same_interaction_again_is_one_case(store: ReviewStore, clock: ManualClock) -> None:
    fill(store, a_case(local={"faithfulness": 0.5}, reasons=(Reason.CONTROL,)))
    store.label("case-0000000000000001", [AGREE], author="ann", expected_revision=0)
    clock.advance(60)
    fill(
        store,
        a_case(
            response="Indeed it is not covered.",
            scores={"faithfulness": 0.0},
            reasons=(Reason.FEEDBACK,),
            feedback=(Feedback(NOON, 0.0),),
        ),
    )
    (row,) = store.find(Query()).rows
    assert row.reasons == (Reason.CONTROL, Reason.FEEDBACK)
    assert row.scores == {("faithfulness", "judged"): 0.0, ("faithfulness", "local"): 0.5}
    assert row.probability == 0.1
    assert row.labelled
    held = store.get(row.id)
    assert held is not None
    assert (held.revision, held.stored_unix, len(held.labels)) == (1, NOON, 1)
    assert ids(store, Query(text="indeed")) == [row.id]
    assert ids(store, Query(text='"water damage is"')) == []  # words of the response that was


FILTERS: list[tuple[Query, set[str]]] = [
    (Query(metric="faithfulness", score_max=0.3), {"a"}),
    (Query(metric="faithfulness", kind="local", score_max=0.3), {"b"}),
    (Query(metric="faithfulness", score_min=0.25, score_max=0.25), {"a"}),
    (Query(metric="faithfulness"), {"a", "b"}),
    (Query(metric="nothing"), set()),
    (Query(cause="unsupported"), {"a"}),
    (Query(reason=Reason.CONTROL), {"b"}),
    (Query(mark="streaming"), {"b"}),
    (Query(segments={"tier": "gold"}), {"a"}),
    (Query(segments={"tier": "gold", "region": "eu"}), set()),
    (Query(service="shop"), {"a", "c"}),
    (Query(service_version="2.0"), {"b"}),
    (Query(prompt_version="7"), {"c"}),
    (Query(model="other"), {"c"}),
    (Query(since_unix=NOON + 10), {"b", "c"}),
    (Query(until_unix=NOON + 10), {"a"}),
    (Query(since_unix=NOON + 10, until_unix=NOON + 20), {"b"}),
    (Query(labelled=True), {"c"}),
    (Query(labelled=False), {"a", "b"}),
    (Query(author="ann"), {"c"}),
    (Query(author="bob"), set()),
    (Query(golden=True), {"c"}),
    (Query(skipped=True), {"b"}),
    (Query(trace_id="t-2"), {"b"}),
    (Query(session="s-3", user="u-3"), {"c"}),
    (Query(service="shop", cause="unsupported", text="battery"), {"a"}),
    (Query(service="shop'; DROP TABLE cases; --"), set()),
    (Query(sort=Sort.DRAWN), {"b"}),
]


def test_filters(store: ReviewStore) -> None:
    fill(
        store,
        a_case("a", question="How long does the battery last?", scores={"faithfulness": 0.25},
               local={"faithfulness": 0.9}, cause=Cause.UNSUPPORTED, segments={"tier": "gold"}),
        a_case("b", scores={"faithfulness": 0.75}, local={"faithfulness": 0.1}, service="bank", service_version="2.0",
               reasons=(Reason.CONTROL,), marks=("streaming",), trace_ids=("t-1", "t-2"), ended_unix=NOON + 10),
        a_case("c", model="other", prompt_version="7", ended_unix=NOON + 20, session="s-3", user="u-3"),
    )  # fmt: skip
    store.label("c", [AGREE, Draft(LabelKind.GOLDEN, True)], author="ann", expected_revision=0)
    store.label("b", [Draft(LabelKind.SKIP)], author="ann", expected_revision=0)
    for query, wanted in FILTERS:
        assert {row.id for row in store.find(query).rows} == wanted, query
        assert store.count(query) == len(wanted), query
        assert {case.id for case in store.each(query)} == wanted, query


TEXTS = {
    "en": ("What is the naïve battery-life?", "It lasts ten hours, e.g. when idle."),
    "de": ("Wie lange gilt die Gewährleistung?", "Zwei Jahre."),
    "zh": ("保修期有多长？", "保修期为两年。"),
    "ja": ("保証はいつまでですか", "二年間です"),
    "th": ("รับประกันนานเท่าไร", "สองปี"),
    "ru": ("Сколько длится гарантия?", "Два года."),
    "none": (None, None),
}


SEARCHES: list[tuple[str, set[str]]] = [
    ("battery", {"en"}),
    ("NAIVE", {"en"}),
    ("battery hours", {"en"}),  # one word in the question, one in the answer
    ("hours battery", {"en"}),
    ("battery years", set()),
    ('"ten hours"', {"en"}),
    ('"hours ten"', set()),
    ('"ten hours', {"en"}),  # a quote that is not closed yet
    ("batt*", {"en"}),
    ("batt", set()),
    ("battery-life", {"en"}),
    ("gewahrleistung", {"de"}),
    ("保修", {"zh"}),
    ("修保", set()),
    ("二年", {"ja"}),
    ("ประกัน", {"th"}),
    ("гарантия", {"ru"}),
    ("question:battery", set()),  # no syntax: these words in a row
    ("battery OR gewährleistung", set()),
    ("NEAR(ten hours)", set()),
    ("???", set()),
    ('"', set()),
    ("*", set()),
    ("\x00", set()),
    ("", set(TEXTS)),
    ("   ", set(TEXTS)),
]


def test_search(store: ReviewStore) -> None:
    fill(store, *(a_case(name, question=q, response=r) for name, (q, r) in TEXTS.items()))
    for text, wanted in SEARCHES:
        assert set(ids(store, Query(text=text))) == wanted, text
        assert store.count(Query(text=text)) == len(wanted), text


def test_orders(store: ReviewStore) -> None:
    control = (Reason.CONTROL,)
    fill(
        store,
        a_case("a", scores={"f": 0.9, "g": 0.2}, ended_unix=NOON + 3, reasons=control, order=0.7),
        a_case("b", scores={"f": 0.5, "g": 0.6}, ended_unix=NOON + 1, reasons=control, order=0.2),
        a_case("c", scores={"f": 0.7}, local={"g": 0.1}, ended_unix=NOON + 2),
        a_case("d", ended_unix=NOON),
    )
    assert ids(store) == ["a", "c", "b", "d"]
    assert ids(store, Query(sort=Sort.OLDEST)) == ["d", "b", "c", "a"]
    assert ids(store, Query(sort=Sort.LOWEST)) == ["a", "b", "c", "d"]
    assert ids(store, Query(sort=Sort.HIGHEST)) == ["c", "b", "a"]
    assert ids(store, Query(sort=Sort.LOWEST, metric="f")) == ["b", "c", "a"]
    assert ids(store, Query(sort=Sort.LOWEST, metric="g")) == ["c", "a", "b"]
    assert ids(store, Query(sort=Sort.LOWEST, metric="g", kind="judged")) == ["a", "b"]
    assert ids(store, Query(sort=Sort.HIGHEST, metric="f")) == ["a", "c", "b"]
    assert ids(store, Query(sort=Sort.DRAWN)) == ["b", "a"]


def test_less_is_better_counts_not_as_low(store: ReviewStore) -> None:
    case = a_case(scores={"faithfulness": 0.8})
    worse = scored("noncommittal", 0.0, lower_is_better=True)
    again = scored("faithfulness", 0.1, attempt=1)
    fill(store, Case(**{**_fields(case), "results": (*case.results, worse, again)}))
    (row,) = store.find(Query()).rows
    assert row.lowest == 0.8
    assert row.scores == {("faithfulness", "judged"): 0.8, ("noncommittal", "judged"): 0.0}


def _fields(case: Case) -> dict[str, object]:
    return {name: getattr(case, name) for name in Case.__dataclass_fields__}


@pytest.mark.parametrize("sort", list(Sort))
def test_pages_hold_each_case_once(store: ReviewStore, sort: Sort) -> None:
    fill(
        store,
        *(
            a_case(
                f"case-{number}",
                scores={"f": number % 3 / 2} if number % 5 else {},
                ended_unix=NOON + number % 4,
                reasons=(Reason.CONTROL,),
                order=number % 3 / 3,
            )
            for number in range(23)
        ),
    )
    whole = [row.id for row in store.find(Query(sort=sort), limit=200).rows]
    assert len(whole) == (18 if sort is Sort.HIGHEST else 23)
    paged: list[str] = []
    after = None
    while True:
        page = store.find(Query(sort=sort), after=after, limit=4)
        paged += [row.id for row in page.rows]
        after = page.next
        if after is None:
            break
        assert len(page.rows) == 4
    assert paged == whole
    assert store.count(Query(sort=sort)) == len(whole)
    assert [case.id for case in store.each(Query(sort=sort))] == whole


def test_a_page_continues_after_its_last_row_is_gone(store: ReviewStore) -> None:
    fill(store, *(a_case(f"case-{number}", ended_unix=NOON + number) for number in range(6)))
    page = store.find(Query(), limit=2)
    assert [row.id for row in page.rows] == ["case-5", "case-4"]
    store.erase(Subject(SubjectKind.CASE, "case-4"))
    fill(store, a_case("case-9", ended_unix=NOON + 9))
    assert [row.id for row in store.find(Query(), after=page.next, limit=2).rows] == ["case-3", "case-2"]


@pytest.mark.parametrize("after", ["", "x", "W10", "bnVsbA", "WzEsICJ4Il0", "é", "[" * 5000])
def test_a_made_up_cursor_is_refused(store: ReviewStore, after: str) -> None:
    with pytest.raises(BadQuery):
        store.find(Query(), after=after)


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_a_page_is_bounded(store: ReviewStore, limit: int) -> None:
    with pytest.raises(BadQuery):
        store.find(Query(), limit=limit)


def test_count_ends_where_it_is_told(store: ReviewStore) -> None:
    fill(store, *(a_case(f"case-{number}") for number in range(7)))
    assert store.count(Query()) == 7
    assert store.count(Query(), at_most=5) == 5


def test_facets(store: ReviewStore) -> None:
    fill(
        store,
        a_case("a", scores={"f": 1}, cause=Cause.UNSUPPORTED, segments={"tier": "gold"}, marks=("streaming",)),
        a_case(
            "b", scores={"f": 1}, local={"f": 1}, segments={"tier": "gold"}, service="bank", prompt_version="7"
        ),
        a_case("c", segments={"tier": "free"}, service="bank", reasons=(Reason.CONTROL,)),
    )
    store.label("a", [AGREE], author="ann", expected_revision=0)
    facets = store.facets()
    assert facets.services == {"bank": 2, "shop": 1}
    assert facets.service_versions == {"1.4": 3}
    assert facets.prompt_versions == {"7": 1}
    assert facets.models == {"gpt-4o-mini": 3}
    assert facets.causes == {"unsupported": 1}
    assert facets.reasons == {"low_score": 2, "control": 1}
    assert facets.marks == {"streaming": 1}
    assert facets.metrics == {("f", "judged"): 2, ("f", "local"): 1}
    assert facets.segments == {"tier": {"gold": 2, "free": 1}}
    assert facets.authors == {"ann": 1}


def test_labels_are_appended(store: ReviewStore, clock: ManualClock) -> None:
    fill(store, a_case("a"))
    drafts = [
        AGREE,
        Draft(LabelKind.CLAIM, "contradicted", metric="faithfulness", target=0),
        Draft(LabelKind.PASSAGE, "irrelevant", target=2),
        Draft(LabelKind.SCORE, 0.5, metric="faithfulness"),
        Draft(LabelKind.COMMENT, "see \u2018terms\u2019"),
        Draft(LabelKind.REFERENCE, "It is not covered."),
        Draft(LabelKind.GOLDEN, True),
    ]
    clock.advance(5)
    case = store.label("a", drafts, author="ann", expected_revision=0, in_order=True, source="api")
    assert case == store.get("a")
    assert case.revision == 1
    assert [(one.kind, one.value, one.metric, one.target) for one in case.labels] == [
        (one.kind, one.value, one.metric, one.target) for one in drafts
    ]
    assert {(one.author, one.at_unix, one.revision, one.in_order, one.source) for one in case.labels} == {
        ("ann", NOON + 5, 1, True, "api")
    }
    again = store.label("a", [Draft(LabelKind.SCORE, 1, metric="faithfulness")], author="ann", expected_revision=1)
    assert len(again.labels) == 8
    (holds,) = again.in_effect.of(LabelKind.SCORE, metric="faithfulness")
    assert holds.value == 1
    stats = store.stats()
    assert (stats.cases, stats.labelled, stats.golden, stats.waiting) == (1, 1, 1, 0)


def test_two_people_do_not_overwrite_each_other(store: ReviewStore) -> None:
    fill(store, a_case("a"))
    store.label("a", [AGREE], author="ann", expected_revision=0)
    with pytest.raises(Conflict, match="'ann' was there first") as caught:
        store.label(
            "a", [Draft(LabelKind.AGREE, "disagree", metric="faithfulness")], author="bob", expected_revision=0
        )
    assert caught.value.case == store.get("a")
    assert caught.value.case.revision == 1
    case = store.label(
        "a", [Draft(LabelKind.AGREE, "disagree", metric="faithfulness")], author="bob", expected_revision=1
    )
    assert [(one.author, one.value) for one in case.in_effect.labels] == [("ann", "agree"), ("bob", "disagree")]
    assert case.in_effect.authors == ("ann", "bob")
    assert store.find(Query()).rows[0].authors == ("ann", "bob")


def test_an_import_need_not_know_the_revision(store: ReviewStore) -> None:
    fill(store, a_case("a"))
    store.label("a", [AGREE], author="ann", expected_revision=None)
    assert store.label("a", [AGREE], author="bob", expected_revision=None).revision == 2


def test_undo_takes_back_ones_own_last(store: ReviewStore) -> None:
    fill(store, a_case("a"))
    store.label("a", [AGREE], author="ann", expected_revision=0)
    store.label(
        "a", [Draft(LabelKind.GOLDEN, True), Draft(LabelKind.COMMENT, "x")], author="ann", expected_revision=1
    )
    store.label("a", [AGREE], author="bob", expected_revision=2)
    assert store.find(Query()).rows[0].golden
    case = store.undo("a", author="ann", expected_revision=3)
    assert case.revision == 4
    assert [(one.author, one.kind) for one in case.in_effect.labels] == [
        ("ann", LabelKind.AGREE),
        ("bob", LabelKind.AGREE),
    ]
    assert not store.find(Query()).rows[0].golden
    assert len(case.labels) == 5  # nothing was taken away
    with pytest.raises(Conflict):
        store.undo("a", author="ann", expected_revision=3)
    case = store.undo("a", author="ann", expected_revision=4)
    assert case.in_effect.authors == ("bob",)
    assert ids(store, Query(author="ann")) == []
    with pytest.raises(NothingToUndo):
        store.undo("a", author="ann", expected_revision=5)
    case = store.undo("a", author="bob", expected_revision=5)
    assert ids(store, Query(labelled=False)) == ["a"]
    assert store.get("a") == case


def test_a_skip_is_seen_until_somebody_labels(store: ReviewStore) -> None:
    fill(store, a_case("a"))
    store.label("a", [Draft(LabelKind.SKIP)], author="ann", expected_revision=0)
    (row,) = store.find(Query(skipped=True)).rows
    assert not row.labelled
    store.label("a", [AGREE], author="bob", expected_revision=1)
    assert ids(store, Query(skipped=True)) == []


def test_labels_that_can_not_be_taken(store: ReviewStore) -> None:
    fill(store, a_case("a"))
    with pytest.raises(NoCase):
        store.label("b", [AGREE], author="ann", expected_revision=0)
    with pytest.raises(NoCase):
        store.undo("b", author="ann", expected_revision=0)
    for drafts, author in (
        ([], "ann"),
        ([AGREE], " "),
        ([AGREE], "a" * 201),
        ([AGREE] * 501, "ann"),
        ([Draft(LabelKind.UNDO, target=1)], "ann"),
        ([Draft(LabelKind.COMMENT, "\ud800")], "ann"),
        ([AGREE], "\ud800"),
    ):
        with pytest.raises(BadLabel):
            store.label("a", drafts, author=author, expected_revision=0)
    case = store.get("a")
    assert case is not None
    assert case.labels == ()


@pytest.mark.parametrize("kind", list(SubjectKind))
def test_a_subject_is_erased(store: ReviewStore, clock: ManualClock, kind: SubjectKind) -> None:
    mine = {"session": "s-mine", "user": "u-mine", "trace_ids": ("t-other", "t-mine")}
    fill(
        store,
        a_case("c-mine", question="unheard-of words", **mine),  # type: ignore[arg-type]  # as a_case names them
        a_case("c-other", question="other words"),
    )
    store.label("c-mine", [AGREE, Draft(LabelKind.COMMENT, "x")], author="ann", expected_revision=0)
    clock.advance(10)
    erased = store.erase(Subject(kind, f"{kind.value[0]}-none", also=(f"{kind.value[0]}-mine",)))
    assert (erased.case_ids, erased.labels) == (("c-mine",), 2)
    assert store.get("c-mine") is None
    assert ids(store) == ["c-other"]
    assert ids(store, Query(text="unheard")) == []
    assert ids(store, Query(text="words")) == ["c-other"]
    # A copy that comes late, from a queue or another replica, is not taken; what the subject does later is.
    fill(store, a_case("c-mine", ended_unix=NOON + 9, **mine))  # type: ignore[arg-type]  # as above
    assert ids(store) == ["c-other"]
    fill(store, a_case("c-mine", ended_unix=NOON + 11, **mine))  # type: ignore[arg-type]  # as above
    assert set(ids(store)) == {"c-mine", "c-other"}
    assert store.erase(Subject(kind, "nobody")).case_ids == ()


def test_odd_texts_are_kept(store: ReviewStore) -> None:
    odd = "a\x00b \u202e\ufdd0 \U0001f600 <script> ' \" \\ \n"
    fill(store, a_case("a", question=odd, user=odd, service=odd))
    case = store.get("a")
    assert case is not None
    assert (case.interaction.question, case.origin.user) == (odd, odd)
    assert ids(store, Query(user=odd)) == ["a"]


def test_many_writers_lose_nothing(store: ReviewStore) -> None:
    if isinstance(store, MemoryStore):
        return  # for one thread, as it says
    fill(store, *(a_case(f"case-{number}") for number in range(4)))

    def label(author: str) -> None:
        for number in range(4):
            store.label(f"case-{number}", [AGREE], author=author, expected_revision=None)
            store.find(Query(text="warranty"))
            store.put(a_case(f"case-{author}-{number}"))

    threads = [threading.Thread(target=label, args=(f"author-{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.flush()
    assert store.stats().cases == 4 + 6 * 4
    for number in range(4):
        case = store.get(f"case-{number}")
        assert case is not None
        assert sorted(one.revision for one in case.labels) == [1, 2, 3, 4, 5, 6]


def test_close_twice(store: ReviewStore) -> None:
    store.close()
    store.close()


def test_what_many_cases_have_is_found_like_what_few_have(store: ReviewStore) -> None:
    """A store may look for frequent values in another way than for rare ones."""
    for number in range(700):
        case = a_case(
            f"case-{number}",
            question=f"a frequent word and {'an odd' if number % 300 == 0 else 'a plain'} one",
            segments={"tier": "gold" if number % 150 == 0 else "free"},
            ended_unix=NOON + number,
        )
        while not store.put(case):
            store.flush()
    store.flush()
    assert store.count(Query(text="frequent")) == 700
    assert store.count(Query(text="frequent odd")) == 3
    assert store.count(Query(text="frequent", segments={"tier": "gold"})) == 5
    assert store.count(Query(segments={"tier": "free"}, reason=Reason.LOW_SCORE)) == 695
    assert ids(store, Query(text="frequent word", segments={"tier": "gold"}, sort=Sort.OLDEST)) == [
        f"case-{number}" for number in range(0, 700, 150)
    ]
    page = store.find(Query(text='"frequent word"'), limit=2)
    assert [row.id for row in page.rows] == ["case-699", "case-698"]
    page = store.find(Query(text='"frequent word"'), after=page.next, limit=1)
    assert [row.id for row in page.rows] == ["case-697"]
    assert store.facets().segments == {"tier": {"free": 695, "gold": 5}}
    store.erase(Subject(SubjectKind.CASE, "case-0"))
    assert store.facets().segments == {"tier": {"free": 695, "gold": 4}}


def test_who_put_a_case_is_told_once_when_it_is_committed(store: ReviewStore) -> None:
    told: list[str] = []
    case = a_case()
    assert store.put(case, lambda: told.append("committed" if store.get(case.id) is not None else "too early"))
    store.flush()
    assert told == ["committed"]

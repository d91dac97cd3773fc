"""Which interactions become cases, and with which probability."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from collector.pipeline.clock import ManualClock
from collector.pipeline.receipt import Receipt
from collector.records.decision import Fate
from collector.records.diagnosis import Cause
from collector.records.found import Mark
from collector.review.build import Builder
from collector.review.case import Case, Feedback, OutcomeKind, Reason
from collector.review.feedback import FeedbackIntake
from collector.review.memory import MemoryStore
from collector.review.options import ControlOptions, PickOptions
from collector.review.picker import Picker, Puts
from collector.review.query import Query, Sort
from collector.review.quotas import Quotas
from collector.review.recent import Recent
from collector.sampling.hashing import Uniform
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from scorers.interaction import Interaction, Passage
from scorers.scorer import Kind
from tests.support.review_cases import NOON
from tests.support.review_settled import FAILED, REFUSED, a_result, a_settled

NO_CONTROL = ControlOptions(rate=0)


class Bench:
    def __init__(self, options: PickOptions, *, judging: bool = True) -> None:
        self.clock = ManualClock()
        self.telemetry = Telemetry()
        self.store = MemoryStore(self.clock, max_cases=100_000)
        self.options = options
        self.judging = judging
        self.picker = self.with_store(self.store)

    def with_store(self, store: Puts) -> Picker:
        builder = Builder(
            lower_is_better={"noncommittal"},
            descriptive={"context_count"},
            prompt_versions=("prompt.version", "v"),
            judge_model="judge-1",
        )
        return Picker(
            self.options,
            store=store,
            builder=builder,
            chance=Uniform("seed", "review.control"),
            judging=self.judging,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    def reasons(self, case_id: str = "interaction-0001") -> set[Reason]:
        case = self.store.get(case_id)
        return {pick.reason for pick in case.picks} if case is not None else set()

    def counted(self, name: str, **labels: str) -> float:
        return self.telemetry.registry.get_sample_value(name, labels) or 0.0


def bench(*, judging: bool = True, control: ControlOptions = NO_CONTROL, **options: object) -> Bench:
    return Bench(PickOptions(control=control, **options), judging=judging)  # type: ignore[arg-type]  # its fields


def test_a_case_holds_what_is_known_of_the_interaction() -> None:
    made = bench()
    made.picker.settle(
        a_settled(
            judged={
                "faithfulness": 0.1,
                "groundedness": FAILED,
                "response_relevancy": REFUSED,
                "noncommittal": 1.0,
            },
            local={"faithfulness": 0.2, "context_count": 0.0},
            attributes={"v": 12, "user.plan": "free"},
            response_id="resp-1",
        )
    )
    case = made.store.get("interaction-0001")
    assert case is not None
    by_key = {(one.metric, one.kind): one for one in case.results}
    judged = by_key["faithfulness", "judged"]
    assert (judged.outcome, judged.score, judged.fingerprint) == (OutcomeKind.SCORED, 0.1, "faithfulness@1")
    failed = by_key["groundedness", "judged"]
    assert (failed.outcome, failed.score, failed.reason, failed.detail) == ("failed", None, "bad_reply", "no JSON")
    refused = by_key["response_relevancy", "judged"]
    assert (refused.outcome, refused.reason) == ("not_applicable", "refusal")
    assert by_key["noncommittal", "judged"].lower_is_better
    assert not by_key["context_count", "local"].quality
    assert case.lowest == 0.1
    assert case.decision is not None
    assert (case.decision.policy, case.weight, case.local_weight) == ("base", pytest.approx(40), 2.0)
    assert case.segments == {"service": "shop"}
    assert case.marks == ("streaming",)
    origin = case.origin
    assert (origin.service, origin.service_version, origin.prompt_version) == ("shop", "1.4", "12")
    assert (origin.model, origin.session, origin.user, origin.response_id) == (
        "gpt-4o-mini",
        "session-1",
        "user-1",
        "resp-1",
    )
    assert origin.attributes == {"v": 12, "user.plan": "free"}
    assert (case.ended_unix, case.judge_model, case.cost_usd) == (NOON, "judge-1", pytest.approx(0.008))


class Late(MemoryStore):
    """A store that writes when it is told to."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.room = True
        self.waiting: list[Callable[[], None]] = []

    def put(self, case: Case, ended: Callable[[], None] | None = None) -> bool:
        if not self.room:
            return False
        assert ended is not None
        self.waiting.append(ended)
        return super().put(case)


async def test_a_receipt_is_held_until_its_case_is_written_or_not_taken() -> None:
    made = bench()
    late = Late(made.clock)
    made.picker = made.with_store(late)
    released: list[str] = []
    for name, late.room in (("written", True), ("no room", False)):
        receipt = Receipt(partial(released.append, name))
        made.picker.settle(replace(a_settled(judged={"faithfulness": 0.0}), receipt=receipt))
        receipt.release()
        await asyncio.sleep(0)
    assert released == ["no room"]
    late.waiting[0]()
    await asyncio.sleep(0)
    assert released == ["no room", "written"]


def test_what_is_filtered_is_no_case() -> None:
    made = bench()
    made.picker.settle(a_settled(judged={"faithfulness": 0.0}, fate=Fate.FILTERED))
    assert made.store.stats().cases == 0
    assert made.picker.feedback(Feedback(NOON, 0.0), case_id="interaction-0001") is None


@pytest.mark.parametrize(
    ("judged", "local", "wanted"),
    [
        ({"faithfulness": 0.2}, {}, True),
        ({"faithfulness": 0.5}, {}, True),
        ({"faithfulness": 0.51}, {}, False),
        ({"faithfulness": 0.9, "groundedness": 0.2}, {}, True),
        ({"noncommittal": 0.0}, {}, False),  # less is better
        ({"context_count": 0.0}, {}, False),  # neither good nor bad
        ({"faithfulness": FAILED}, {"faithfulness": 0.0}, False),  # judged, and not low: what failed is not low
        (None, {"faithfulness": 0.2}, True),
        (None, {"faithfulness": 0.8}, False),
        (None, {}, False),
    ],
)
def test_low_scores(judged: dict[str, float] | None, local: dict[str, float], wanted: bool) -> None:
    made = bench(low_score=0.5)
    made.picker.settle(a_settled(judged=judged, local=local))
    assert made.reasons() == ({Reason.LOW_SCORE} if wanted else set())


def test_low_is_low_for_its_segment() -> None:
    made = bench(low_score=0.9, low_share=0.1, low_per_day=1_000)
    for number in range(100):
        made.clock.advance(3_600)
        made.picker.settle(a_settled(f"bad-{number}", judged={"f": 0.1 + number % 10 / 20}))
        made.picker.settle(
            a_settled(f"good-{number}", judged={"f": 0.6 + number % 10 / 40}, segments=(("service", "bank"),))
        )
    rows = made.store.find(Query(reason=Reason.LOW_SCORE), limit=200).rows
    later = [row for row in rows if int(row.id.split("-")[1]) >= 30]
    # After the first scores of each segment, of which any may be the lowest, each keeps its own lowest tenth.
    assert {row.id.split("-")[0]: row.lowest for row in later} == {"bad": 0.1, "good": 0.6}
    assert len(later) == 14


def test_local_and_judge_disagree() -> None:
    made = bench(disagreement=0.5, low_per_day=0)
    made.picker.settle(a_settled("a", judged={"f": 0.9, "g": 0.5}, local={"f": 0.3, "g": 0.5}))
    made.picker.settle(a_settled("b", judged={"f": 0.9}, local={"f": 0.5, "g": 0.0}))
    made.picker.settle(a_settled("c", local={"f": 0.5}))
    case = made.store.get("a")
    assert case is not None
    assert [(pick.reason, pick.detail, pick.probability) for pick in case.picks] == [
        (Reason.DISAGREEMENT, "f", None)
    ]
    assert made.store.stats().cases == 1


def test_each_cause_has_its_quota() -> None:
    made = bench(causes=(Cause.UNSUPPORTED, Cause.KNOWLEDGE_GAP), cause_per_day=2)
    for number in range(5):
        made.clock.advance(3_700)
        for cause in (Cause.UNSUPPORTED, Cause.KNOWLEDGE_GAP, Cause.RANKING, Cause.FINE):
            made.picker.settle(a_settled(f"{cause}-{number}", cause=cause))
    causes = made.store.facets().causes
    assert causes == {"unsupported": 2, "knowledge_gap": 2}
    assert made.counted("groundwatch_review_picked_total", reason="diagnosis") == 4
    assert made.counted("groundwatch_review_over_quota_total", reason="diagnosis") == 6


def test_quotas_are_by_segment_and_day_and_not_spent_at_once() -> None:
    made = bench(low_score=1, low_share=1, low_per_day=24)
    for number in range(48):  # two days, a burst in each hour
        made.clock.advance(3_600)
        for one in range(10):
            for service in ("shop", "bank"):
                made.picker.settle(
                    a_settled(f"{service}-{number}-{one}", judged={"f": 0.1}, segments=(("service", service),))
                )
        if number == 5:
            assert made.store.stats().cases == 2 * 12  # a twelfth of the day's quota an hour
    hours = [int(case.id.split("-")[1]) for case in made.store.each(Query(sort=Sort.OLDEST))]
    assert len(hours) == 2 * 48
    for start in range(24):
        assert sum(start <= hour < start + 24 for hour in hours) <= 2 * 24


def test_a_reason_turned_off_picks_and_counts_nothing() -> None:
    made = bench(low_per_day=0, disagreement_per_day=0, cause_per_day=0)
    made.picker.settle(a_settled(judged={"f": 0.0}, local={"f": 1.0}, cause=Cause.UNSUPPORTED))
    assert made.store.stats().cases == 0
    assert made.counted("groundwatch_review_over_quota_total", reason="low_score") == 0


def test_segments_beyond_the_bound_share_a_quota() -> None:
    made = bench(low_score=1, low_share=1, low_per_day=12, max_segments=1)
    for number in range(100):
        made.picker.settle(a_settled(f"c-{number}", judged={"f": 0.1}, segments=(("service", f"s{number}"),)))
    assert made.store.stats().cases <= 1 * len(Reason) + 1


def test_the_judge_contradicts_itself() -> None:
    made = bench(noise=0.3)
    settled = a_settled(judged={"f": 0.9, "g": 0.8})
    made.picker.settle(settled)
    again = [
        a_result("interaction-0001", name, value, kind=Kind.JUDGED, attempt=1)
        for name, value in (("f", 0.4), ("g", 0.7))
    ]
    made.picker.repeated(settled.found.interaction, {"f": 0.9, "g": 0.8}, again)
    case = made.store.get("interaction-0001")
    assert case is not None
    assert [(pick.reason, pick.detail) for pick in case.picks] == [(Reason.JUDGE_NOISE, "f")]
    assert [(one.metric, one.score, one.attempt) for one in case.results] == [
        ("f", 0.9, 0),
        ("g", 0.8, 0),
        ("f", 0.4, 1),
        ("g", 0.7, 1),
    ]
    assert case.lowest == 0.8


def test_a_judge_that_agrees_with_itself_is_no_case() -> None:
    made = bench(noise=0.3)
    settled = a_settled(judged={"f": 0.9})
    made.picker.settle(settled)
    made.picker.repeated(
        settled.found.interaction, {"f": 0.9}, [a_result("x", "f", 0.7, kind=Kind.JUDGED, attempt=1)]
    )
    made.picker.repeated(
        Interaction("unknown"), {"f": 0.9}, [a_result("x", "f", 0.0, kind=Kind.JUDGED, attempt=1)]
    )
    assert made.store.stats().cases == 0


# --- the control part


def test_control_is_drawn_from_what_was_judged() -> None:
    made = bench(control=ControlOptions(rate=1, per_day=1e9))
    made.picker.settle(a_settled("a", judged={"f": 1.0}))
    made.picker.settle(a_settled("b", judged={"f": FAILED}))  # asked, and no answer: part of what was judged
    made.picker.settle(a_settled("c", local={"f": 1.0}))
    made.picker.settle(a_settled("d", judged={}, fate=Fate.SHED))
    assert {case.id for case in made.store.each(Query())} == {"a", "b"}


def test_a_replay_is_no_draw_from_the_traffic() -> None:
    made = bench(control=ControlOptions(rate=1, per_day=1e9))
    replayed = a_settled("a", judged={"f": 0.0})
    made.picker.settle(replace(replayed, found=replace(replayed.found, marks=frozenset({Mark.REPLAYED}))))
    assert made.reasons("a") == {Reason.LOW_SCORE}


def test_control_is_drawn_from_all_without_a_judge() -> None:
    made = bench(control=ControlOptions(rate=1, per_day=1e9), judging=False)
    made.picker.settle(a_settled("a", local={"f": 1.0}))
    made.picker.settle(a_settled("b"))
    assert made.store.stats().cases == 2


def test_control_is_uniform_whatever_the_score_and_the_same_in_each_replica() -> None:
    one, two = (bench(control=ControlOptions(rate=0.1, per_day=1e9), low_per_day=0) for _ in range(2))
    for number in range(4_000):
        settled = a_settled(f"i-{number}", judged={"f": number % 2})
        one.picker.settle(settled)
        two.picker.settle(settled)
    cases = list(one.store.each(Query(sort=Sort.DRAWN)))
    assert [case.id for case in cases] == [case.id for case in two.store.each(Query(sort=Sort.DRAWN))]
    # 4 standard deviations of the binomial: 400 of 4,000, and 200 of each score
    assert abs(len(cases) - 400) < 4 * 19
    assert abs(sum(case.lowest or 0 for case in cases) - 200) < 4 * 13.5
    assert {case.probability for case in cases} == {0.1}
    orders = [case.control.order for case in cases if case.control is not None and case.control.order is not None]
    assert len(orders) == len(cases)
    assert all(0 <= order < 1 for order in orders)
    assert abs(sum(order < 0.5 for order in orders) / len(orders) - 0.5) < 0.1


def test_the_share_of_a_minute_comes_from_earlier_minutes() -> None:
    made = bench(control=ControlOptions(rate=0.5, per_day=1_440), low_per_day=0)  # one a minute
    for minute in range(90):
        for number in range(100):
            made.picker.settle(a_settled(f"i-{minute}-{number}", judged={"f": 1.0}))
        made.clock.advance(60)
    cases = [case for case in made.store.each(Query(sort=Sort.OLDEST)) if case.probability is not None]
    rates = {int(case.id.split("-")[1]): case.probability for case in cases}
    assert rates[0] == 0.5  # nothing was known
    assert {rate for minute, rate in rates.items() if minute} == {0.01}
    later = sum(int(case.id.split("-")[1]) > 0 for case in cases)
    assert abs(later - 89) < 4 * 9.4  # of 8,900 with one in a hundred


def test_silence_lets_the_share_rise_to_the_rate() -> None:
    made = bench(control=ControlOptions(rate=0.5, per_day=1_440), low_per_day=0)
    for _ in range(2):
        made.clock.advance(60)
        for number in range(1_000):
            made.picker.settle(a_settled(f"i-{number}", judged={"f": 1.0}))
    made.clock.advance(7_200)
    for number in range(100):
        made.picker.settle(a_settled(f"later-{number}", judged={"f": 1.0}))
    later = [case for case in made.store.each(Query()) if case.id.startswith("later")]
    assert {case.probability for case in later} == {0.5}


def test_only_the_control_part_has_a_probability() -> None:
    made = bench(control=ControlOptions(rate=0.5, per_day=1e9), low_score=1, low_share=1, low_per_day=1_000_000)
    for number in range(50):
        made.picker.settle(a_settled(f"i-{number}", judged={"f": 0.0}, cause=Cause.UNSUPPORTED))
    for case in made.store.each(Query()):
        control = Reason.CONTROL in {pick.reason for pick in case.picks}
        assert case.probability == (0.5 if control else None)
        assert all(pick.probability is None for pick in case.picks if pick.reason is not Reason.CONTROL)


# --- feedback


def test_late_feedback_makes_a_case() -> None:
    made = bench()
    made.picker.settle(a_settled("a", judged={"f": 1.0}, trace_ids=("t-1", "t-2"), response_id="r-1"))
    made.picker.settle(a_settled("b", judged={"f": 1.0}, trace_ids=("t-3",)))
    assert made.picker.feedback(Feedback(NOON, 0.0, "wrong"), response_id="r-1") == "picked"
    case = made.store.get("a")
    assert case is not None
    assert case.feedback == (Feedback(NOON, 0.0, "wrong"),)
    assert [(pick.reason, pick.probability) for pick in case.picks] == [(Reason.FEEDBACK, None)]
    assert made.picker.feedback(Feedback(NOON, None, "hm"), trace_id="t-3") == "picked"
    assert made.reasons("b") == {Reason.FEEDBACK}
    assert made.picker.feedback(Feedback(NOON, 0.0), trace_id="t-9") is None
    assert made.counted("groundwatch_review_feedback_total", outcome="picked") == 2


def test_good_feedback_is_kept_on_a_case_and_makes_none() -> None:
    made = bench()
    made.picker.settle(a_settled("a", judged={"f": 1.0}))
    assert made.picker.feedback(Feedback(NOON, 1.0), case_id="a") == "content"
    assert made.store.stats().cases == 0
    made.picker.settle(a_settled("b", judged={"f": 0.0}))
    assert made.picker.feedback(Feedback(NOON, 1.0), case_id="b") == "attached"
    case = made.store.get("b")
    assert case is not None
    assert [one.score for one in case.feedback] == [1.0]
    assert made.reasons("b") == {Reason.LOW_SCORE}


def test_a_trace_stands_for_its_latest_interaction() -> None:
    made = bench()
    made.picker.settle(a_settled("a", judged={"f": 1.0}, trace_ids=("t",)))
    made.picker.settle(a_settled("b", judged={"f": 1.0}, trace_ids=("t",)))
    made.picker.feedback(Feedback(NOON, 0.0), trace_id="t")
    assert (made.reasons("a"), made.reasons("b")) == (set(), {Reason.FEEDBACK})


@pytest.mark.parametrize(
    "bound",
    [{"recent_interactions": 3}, {"recent_bytes": 3 * 8_600}, {"recent_interactions": 3, "low_per_day": 0}],
)
def test_what_is_remembered_is_bounded(bound: dict[str, int]) -> None:
    made = bench(**bound)
    for number in range(10):
        made.picker.settle(
            a_settled(f"i-{number}", judged={"f": 1.0}, trace_ids=(f"t-{number}",), response_id=f"r-{number}")
        )
    found = [
        number
        for number in range(10)
        if made.picker.feedback(Feedback(NOON, 0.0), trace_id=f"t-{number}") is not None
    ]
    assert found == [7, 8, 9]


def test_one_interaction_larger_than_all_memory_is_not_remembered() -> None:
    made = bench(recent_bytes=20_000)
    made.picker.settle(a_settled("a", judged={"f": 1.0}))
    made.picker.settle(a_settled("b", judged={"f": 1.0}, question="x" * 30_000, trace_ids=("t-b",)))
    assert made.picker.feedback(Feedback(NOON, 0.0), case_id="b") is None
    assert made.picker.feedback(Feedback(NOON, 0.0), case_id="a") == "picked"


def test_memory_is_bounded_whatever_was_retrieved_beside_the_contexts() -> None:
    """A hundred passages that were retrieved and not used, and metadata, count or are not kept."""
    found = a_settled("a", judged={"f": 1.0}).found
    unused = tuple(Passage("x" * 100_000, id=f"{n}") for n in range(50))
    recent = Recent(max_items=10, max_bytes=20_000)
    settled = replace(a_settled("a", judged={"f": 1.0}), found=replace(found, unused_passages=unused))
    recent.add(settled, kept=False)
    held = recent.find(case_id="a")
    assert held is not None
    assert held.settled.found == found
    heavy = replace(
        found.interaction, contexts=(Passage("text", metadata={"page": ["y" * 10_000, "z" * 10_000]}),)
    )
    recent.add(replace(settled, found=replace(found, interaction=replace(heavy, id="b"))), kept=False)
    assert recent.find(case_id="b") is None


def test_keys_beyond_the_bound_keep_to_their_own_quota() -> None:
    clock = ManualClock()
    quotas = Quotas(clock, max_keys=0)
    taken = dict.fromkeys((12, 120), 0)
    for _ in range(24 * 6):
        for per_day in taken:
            taken[per_day] += sum(quotas.take(f"segment {n}", per_day) for n in range(20))
        clock.advance(599)
    assert taken == {12: 12, 120: 120}


async def test_late_praise_makes_no_reason_to_look() -> None:
    """As feedback that comes while the interaction is remembered does not."""
    made = bench(recent_interactions=0)
    intake = FeedbackIntake(made.picker, made.store, made.clock, redact=str)
    made.picker.settle(a_settled("a", judged={"f": 0.0}, trace_ids=("t-1",)))
    assert await intake.take(score=1.0, trace_id="t-1") == "attached"
    assert made.reasons("a") == {Reason.LOW_SCORE}
    case = made.store.get("a")
    assert case is not None
    assert [one.score for one in case.feedback] == [1.0]


async def test_feedback_finds_a_case_that_memory_has_forgotten() -> None:
    made = bench(recent_interactions=0)
    intake = FeedbackIntake(
        made.picker, made.store, made.clock, redact=lambda text: text.replace("jane", "[NAME]")
    )
    made.picker.settle(a_settled("a", judged={"f": 0.0}, trace_ids=("t-1",)))
    assert await intake.take(score=0.0, comment="jane " + "c" * 5_000, trace_id="t-1") == "attached"
    case = made.store.get("a")
    assert case is not None
    (kept,) = case.feedback
    assert (kept.at_unix, kept.score, kept.comment) == (NOON, 0.0, "[NAME] " + "c" * 3_995)
    assert made.reasons("a") == {Reason.LOW_SCORE, Reason.FEEDBACK}
    assert await intake.take(score=1.0, case_id="a") == "attached"
    assert await intake.take(score=0.0, trace_id="t-9") == "unknown"
    assert await intake.take(score=0.0, case_id="z") == "unknown"
    assert await intake.take(score=0.0, response_id="r-1") == "unknown"
    assert made.counted("groundwatch_review_feedback_total", outcome="unknown") == 3


def test_the_table_of_metrics_knows_the_reasons() -> None:
    assert set(metrics.REVIEW_REASONS) == {one.value for one in Reason}

"""Sums go on over restarts as if there had been none, wherever a process ends and however measures are numbered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.estimates.estimates import Estimates
from collector.estimates.keeping import UnreadableSums
from collector.estimates.measures import Measure
from collector.estimates.options import ClusterOptions, Options
from collector.pipeline.clock import ManualClock
from collector.records.settled import Settled
from collector.telemetry.instruments import Telemetry
from scorers.scorer import Kind
from tests.property.test_estimates_additive import JUDGED, LOCAL, OBJECTIVE, settled, totals

NEW = Measure("noncommittal", Kind.JUDGED)
START = 1_700_000_000_000_000_000
TELEMETRY = Telemetry()  # not what is tested, and slow to make


class Process:
    """Sums of one process; `file` is what the books hold."""

    def __init__(
        self, declared: list[Measure], unix_nano: int, *, segment: str = "service", budget: int = 8_000
    ) -> None:
        self.clock = ManualClock(start_unix_nano=unix_nano)
        self.estimates = Estimates(
            Options(
                objectives=(OBJECTIVE,) if JUDGED in declared else (),
                clusters=ClusterOptions(max_judged=16, max_local=16),
                series_budget=budget,
            ),
            declared=declared,
            segment_names=[segment],
            clock=self.clock,
            telemetry=TELEMETRY,
            durable=True,
        )

    def write(self, file: dict[str, bytes]) -> None:
        file.update(self.estimates.changed())
        for name in [name for name, value in file.items() if not value]:
            del file[name]


def marks(estimates: Estimates) -> list[tuple[str, str, str, float]]:
    return sorted((c.dimension, c.service, c.value, round(c.first_seen, 3)) for c in estimates.changes())


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(
            settled(), st.sampled_from(("on", "on", "write", "restart")), st.sampled_from((0, 1, 90, 30_000))
        ),
        max_size=40,
    )
)
def test_restarts_change_no_sum(steps: list[tuple[Settled, str, int]]) -> None:
    through = Process([JUDGED, LOCAL], START)
    file: dict[str, bytes] = {}
    process = Process([JUDGED, LOCAL], START)
    orders = [[LOCAL, JUDGED], [NEW, JUDGED, LOCAL], [JUDGED, LOCAL]]
    elapsed = 0
    for one, then, pause in steps:
        for each in (through, process):
            each.estimates.settle(one)
            each.clock.advance(pause)
        elapsed += pause
        if then != "on":
            process.write(file)
        if then == "restart":
            process = Process(orders[0], START + elapsed * 10**9)
            orders.append(orders.pop(0))
            if file:
                process.estimates.restore(file)
    assert totals(process.estimates) == pytest.approx(totals(through.estimates))
    assert marks(process.estimates) == marks(through.estimates)
    # A second restart reads what was written under the new numbers.
    process.write(file)
    again = Process([JUDGED, NEW, LOCAL], START + elapsed * 10**9)
    if file:
        again.estimates.restore(file)
    assert totals(again.estimates) == pytest.approx(totals(through.estimates))


@settings(max_examples=10, deadline=None)
@given(st.lists(settled(), min_size=1, max_size=5))
def test_what_no_scorer_gives_any_more_and_what_can_not_be_read_is_left_out(given_: list[Settled]) -> None:
    file: dict[str, bytes] = {}
    before = Process([JUDGED, LOCAL], START)
    for one in given_:
        before.estimates.settle(one)
    before.write(file)

    after = Process([LOCAL], START)
    after.estimates.restore(file)
    kept = {
        name: value
        for name, value in totals(before.estimates).items()
        if name[0].startswith("groundwatch_local_sum")
    }
    now = totals(after.estimates)
    assert {name: value for name, value in now.items() if name in kept} == pytest.approx(kept)

    other_segments = Process([JUDGED, LOCAL], START, segment="tenant")
    other_segments.estimates.restore(file)
    assert totals(other_segments.estimates) == {}
    other_segments.write(file)
    assert not [name for name in file if name.startswith("segment/")][1:]  # only that of `other`


@settings(max_examples=10, deadline=None)
@given(st.lists(settled(), min_size=1, max_size=5))
def test_sums_of_another_instrument_are_not_gone_on_with(given_: list[Settled]) -> None:
    file: dict[str, bytes] = {}
    before = Process([JUDGED, LOCAL], START)
    for one in given_:
        before.estimates.settle(one)
    before.write(file)
    after = Process([replace(JUDGED, fingerprint="a new model"), LOCAL], START)
    after.estimates.restore(file)
    old, new = totals(before.estimates), totals(after.estimates)
    assert not [name for name, _ in new if name.startswith("groundwatch_judged_sum")]
    local = {key: value for key, value in old.items() if key[0].startswith("groundwatch_local_sum")}
    assert {key: value for key, value in new.items() if key in local} == pytest.approx(local)
    levels = {key: value for key, value in old.items() if key[0].startswith("groundwatch_slo")}
    assert {key: value for key, value in new.items() if key[0].startswith("groundwatch_slo")} == levels


@settings(max_examples=10, deadline=None)
@given(settled())
def test_a_damaged_row_costs_itself_only(one: Settled) -> None:
    file: dict[str, bytes] = {}
    before = Process([JUDGED, LOCAL], START)
    before.estimates.settle(one)
    before.write(file)
    file.update({"totals": b"9 of a later version", "segment/x": b"2\xc1"})
    process = Process([JUDGED, LOCAL], START)
    with pytest.raises(UnreadableSums, match="segment/x, totals"):
        process.estimates.restore(file)
    kept = {key: value for key, value in totals(before.estimates).items() if "sum_w_total" in key[0]}
    assert {key: value for key, value in totals(process.estimates).items() if key in kept} == kept


@settings(max_examples=10, deadline=None)
@given(st.lists(settled(), min_size=1, max_size=8))
def test_segments_that_have_no_room_any_more_go_to_other(given_: list[Settled]) -> None:
    file: dict[str, bytes] = {}
    before = Process([JUDGED, LOCAL], START)
    for one in given_:
        before.estimates.settle(one)
    before.write(file)
    after = Process([JUDGED, LOCAL], START, budget=100)
    after.estimates.restore(file)
    assert after.estimates.segments == (("other",),)
    weights = [
        sum(value for (name, _), value in totals(one.estimates).items() if name == "groundwatch_local_sum_w_total")
        for one in (before, after)
    ]
    assert weights[0] == pytest.approx(weights[1])

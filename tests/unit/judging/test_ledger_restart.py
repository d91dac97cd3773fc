"""A restart is no way around a day's budget."""

from __future__ import annotations

import pytest

from collector.judging.ledger import Fuse, Ledger
from collector.pipeline.clock import ManualClock
from scorers.errors import BudgetExhausted
from scorers.judge.limits import Budget, BudgetLimits
from scorers.judge.observer import SilentObserver

START = 1_700_000_000_000_000_000


def test_what_the_day_has_spent_outlives_the_process() -> None:
    before = Ledger(ManualClock(start_unix_nano=START))
    assert before.changed() == {}
    before.call(tokens=100, cost_usd=0.25)
    before.call(tokens=10, cost_usd=None)
    before.judged()
    rows = before.changed()
    assert before.changed() == {}
    after = Ledger(ManualClock(start_unix_nano=START + 3_600 * 10**9))
    after.restore(rows)
    assert after.spent() == before.spent()
    assert after.changed() == {}


def test_another_day_and_another_version_begin_at_nothing() -> None:
    before = Ledger(ManualClock(start_unix_nano=START))
    before.call(tokens=100, cost_usd=0.25)
    rows = before.changed()
    tomorrow = Ledger(ManualClock(start_unix_nano=START + 86_400 * 10**9))
    tomorrow.restore(rows)
    assert tomorrow.spent().calls == 0
    later = Ledger(ManualClock(start_unix_nano=START))
    later.restore({"day": b"2" + rows["day"][1:]})
    assert later.spent().calls == 0


def fuse(clock: ManualClock) -> Budget:
    return Budget(
        hour=BudgetLimits(calls=3),
        day=BudgetLimits(usd=1.0),
        unix_seconds=lambda: clock.unix_nano() / 1e9,
        observer=SilentObserver(),
    )


def test_the_judge_s_own_fuse_stays_blown_over_a_restart() -> None:
    clock = ManualClock(start_unix_nano=START)
    budget = fuse(clock)
    kept = Fuse(budget)
    assert kept.changed() == {}
    for _ in range(3):
        budget.spend(tokens=10, usd=0.1)
    rows = kept.changed()
    assert kept.changed() == {}

    after = fuse(clock)
    Fuse(after).restore(rows)
    with pytest.raises(BudgetExhausted, match="hour"):
        after.check()
    clock.advance(3_600)
    after.check()  # the hour is over; of the day 0.3 dollars are spent
    after.spend(tokens=10, usd=0.7)
    with pytest.raises(BudgetExhausted, match="day"):
        after.check()

    other_version = fuse(clock)
    Fuse(other_version).restore({"spent": b"9" + rows["spent"][1:]})
    other_version.check()

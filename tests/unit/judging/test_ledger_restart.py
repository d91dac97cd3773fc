"""A restart is no way around a day's budget."""

from __future__ import annotations

from collector.judging.ledger import Ledger
from collector.pipeline.clock import ManualClock

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

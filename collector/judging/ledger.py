"""What judging has spent today; the sampler lowers its rate by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Protocol

import msgspec

from collector.pipeline.clock import Clock

_DAY_NANO = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Spent:
    """Spending of one UTC day. `cost_usd` holds the priced calls only; `unpriced_calls` have no known price."""

    day: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced_calls: int = 0
    interactions: int = 0


_VERSION = b"1"


class Ledger:
    """Adds up calls as they are made, failed ones included, and starts anew at midnight UTC. As a `Durable` it keeps
    what the day has spent over a restart, so that restarting is no way around a budget."""

    name = "judging.spent"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent = Spent(self._day())
        self._kept = self._spent

    def _day(self) -> int:
        return self._clock.unix_nano() // _DAY_NANO

    def spent(self) -> Spent:
        day = self._day()
        if day != self._spent.day:
            self._spent = Spent(day)
        return self._spent

    def call(self, *, tokens: int, cost_usd: float | None) -> None:
        """One call was made; `cost_usd` is None where its price is unknown. Without tokens it cost nothing."""
        spent = self.spent()
        self._spent = replace(
            spent,
            calls=spent.calls + 1,
            tokens=spent.tokens + tokens,
            cost_usd=spent.cost_usd + (cost_usd or 0.0),
            unpriced_calls=spent.unpriced_calls + (cost_usd is None and tokens > 0),
        )

    def judged(self) -> None:
        """The judging of one interaction ended."""
        spent = self.spent()
        self._spent = replace(spent, interactions=spent.interactions + 1)

    def changed(self) -> Mapping[str, bytes]:
        """One row, when something was spent since the last call."""
        if self._spent == self._kept:
            return {}
        self._kept = self._spent
        values = {one.name: getattr(self._spent, one.name) for one in fields(Spent)}
        return {"day": _VERSION + msgspec.json.encode(values)}

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Go on from what the last process had spent today. A row of another version is passed over."""
        row = rows.get("day", b"")
        if row.startswith(_VERSION):
            spent = msgspec.json.decode(row[len(_VERSION) :], type=Spent)
            if spent.day == self._day():
                self._spent = self._kept = spent


class Spending(Protocol):
    """What the judge's own fuse has spent, by period."""

    def spent(self) -> dict[str, tuple[int, int, int, float]]: ...

    def go_on(self, spent: Mapping[str, tuple[int, int, int, float]], /) -> None: ...


class Fuse:
    """The judge's own limits as a `Durable`: a process that crashes again and again does not spend its day again and
    again."""

    name = "judging.fuse"

    def __init__(self, budget: Spending) -> None:
        self._budget = budget
        self._kept = budget.spent()

    def changed(self) -> Mapping[str, bytes]:
        """One row, when something was spent since the last call."""
        spent = self._budget.spent()
        if spent == self._kept:
            return {}
        self._kept = spent
        return {"spent": _VERSION + msgspec.json.encode(spent)}

    def restore(self, rows: Mapping[str, bytes]) -> None:
        """Go on from what the last process had spent. A row of another version is passed over."""
        row = rows.get("spent", b"")
        if row.startswith(_VERSION):
            self._budget.go_on(
                msgspec.json.decode(row[len(_VERSION) :], type=dict[str, tuple[int, int, int, float]])
            )
            self._kept = self._budget.spent()

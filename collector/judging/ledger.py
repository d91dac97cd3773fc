"""What judging has spent today; the sampler lowers its rate by it."""

from __future__ import annotations

from dataclasses import dataclass, replace

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


class Ledger:
    """Adds up calls as they are made, failed ones included, and starts anew at midnight UTC."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._spent = Spent(self._day())

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

"""What holds a client back: adaptive concurrency, a circuit breaker with named causes, and a budget as a fuse."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scorers.errors import (
    BudgetExhausted,
    JudgeAuth,
    JudgeError,
    JudgeModelUnknown,
    JudgeOverloaded,
    JudgeQuota,
    JudgeUnreachable,
)
from scorers.judge.observer import BreakerChange, BreakerState, Observer


class Concurrency:
    """Additive increase, multiplicative decrease over the calls in flight to one endpoint.

    Doubles per round trip until the first overload, then grows by one per round trip; an overload takes 30 %
    off, once per round trip (calls that began before the last cut say nothing new).
    """

    def __init__(self, *, start: int, maximum: int, on_change: Callable[[int], None]) -> None:
        self._maximum = maximum
        self._limit = float(min(start, maximum))
        self._slow_start = True
        self._in_flight = 0
        self._cuts = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._on_change = on_change
        on_change(self.limit)

    @property
    def limit(self) -> int:
        return max(1, int(self._limit))

    @property
    def in_flight(self) -> int:
        return self._in_flight

    async def acquire(self) -> int:
        """Wait for a place; returns a ticket for `release`."""
        if self._in_flight < self.limit and not self._waiters:
            self._in_flight += 1
            return self._cuts
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if not waiter.cancelled():
                self._in_flight -= 1  # the place had been handed over already
                self._wake()
            elif waiter in self._waiters:  # a release between the cancellation and now has thrown it out
                self._waiters.remove(waiter)
            raise
        return self._cuts

    def release(self, ticket: int, *, overloaded: bool, worked: bool) -> None:
        self._in_flight -= 1
        before = self.limit
        if overloaded and ticket == self._cuts:
            self._limit = max(1.0, self._limit * 0.7)
            self._slow_start = False
            self._cuts += 1
        elif worked and self._limit < self._maximum:
            self._limit = min(self._maximum, self._limit + (1.0 if self._slow_start else 1.0 / self._limit))
        if self.limit != before:
            self._on_change(self.limit)
        self._wake()

    def _wake(self) -> None:
        while self._waiters and self._in_flight < self.limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._in_flight += 1
                waiter.set_result(None)


_CAUSES: tuple[tuple[type[JudgeError], str], ...] = (
    (JudgeAuth, "auth"),
    (JudgeQuota, "quota"),
    (JudgeModelUnknown, "model_unknown"),
    (JudgeOverloaded, "overloaded"),
    (JudgeUnreachable, "unreachable"),
)


class Breaker:
    """Stops calling an endpoint that can not answer, and says why.

    A wrong key, an empty account and an unknown model open it at once; overload and lost connections after
    `threshold` in a row. After `pause_seconds` (doubled at each failed probe, up to 5 minutes) one call may
    probe; its success closes the breaker. `endpoint` and `host` name it to the observer.
    """

    def __init__(
        self,
        *,
        endpoint: str,
        host: str,
        threshold: int,
        pause_seconds: float,
        monotonic: Callable[[], float],
        observer: Observer,
    ) -> None:
        self._endpoint = endpoint
        self._host = host
        self._threshold = threshold
        self._first_pause = pause_seconds
        self._pause = pause_seconds
        self._monotonic = monotonic
        self._observer = observer
        self._in_a_row = 0
        self._opened = 0.0
        self._open_until = 0.0
        self._error: JudgeError | None = None
        self._probing = False
        self.state = BreakerState.CLOSED
        self.cause = ""

    def check(self) -> None:
        """Raise the error that opened the breaker, or let the call pass (as the probe, when it is time)."""
        if self.state is BreakerState.CLOSED or self._error is None:
            return
        if self._probing or self._monotonic() < self._open_until:
            raise type(self._error)(f"circuit breaker open ({self.cause}): {self._error}")
        self._probing = True
        self._move(BreakerState.HALF_OPEN)

    def seconds_until_probe(self) -> float:
        """0 when a call would pass now."""
        if self.state is BreakerState.CLOSED:
            return 0.0
        return max(0.0, self._open_until - self._monotonic()) or (1.0 if self._probing else 0.0)

    def succeeded(self) -> None:
        self._in_a_row = 0
        self._probing = False
        if self.state is not BreakerState.CLOSED:
            self._pause = self._first_pause
            self._error = None
            self.cause = ""
            self._move(BreakerState.CLOSED)

    def failed(self, error: JudgeError) -> None:
        """Count a failure. Errors about one request (refused, bad reply) show that the endpoint lives."""
        cause = next((name for kind, name in _CAUSES if isinstance(error, kind)), None)
        if cause is None:
            self.succeeded()
            return
        self._in_a_row += 1
        was_probe, self._probing = self._probing, False
        at_once = isinstance(error, (JudgeAuth, JudgeQuota, JudgeModelUnknown))
        if not (at_once or was_probe or self._in_a_row >= self._threshold):
            return
        if was_probe:
            self._pause = min(300.0, self._pause * 2)
        self._error = error
        self.cause = cause
        self._open_until = self._monotonic() + self._pause
        self._move(BreakerState.OPEN)

    def abandoned(self) -> None:
        """The call was cancelled: nothing is known, and the probe is free again."""
        self._probing = False

    def _move(self, state: BreakerState) -> None:
        if state is self.state:
            return
        now = self._monotonic()
        if self.state is BreakerState.CLOSED:
            self._opened = now
        self.state = state
        self._observer.breaker(
            BreakerChange(
                self._endpoint,
                self._host,
                state,
                self.cause,
                failures=self._in_a_row,
                pause_seconds=self._pause if state is BreakerState.OPEN else 0.0,
                open_seconds=now - self._opened,
            )
        )


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """Limits of one period; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    usd: float | None = None


@dataclass(slots=True)
class _Spent:
    period: int = -1
    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


class Budget:
    """A fuse over all endpoints: hour and day in UTC, by calls, tokens and US dollars.

    Checked before a call; what is in flight when a limit is reached is still paid, so a period may pass its limit
    by the calls in flight. Calls of unknown price count as calls and tokens, never as dollars.
    """

    def __init__(
        self, *, hour: BudgetLimits, day: BudgetLimits, unix_seconds: Callable[[], float], observer: Observer
    ) -> None:
        self._limits = {"hour": (3600, hour), "day": (86400, day)}
        self._spent = {name: _Spent() for name in self._limits}
        self._unix_seconds = unix_seconds
        self._observer = observer

    def check(self) -> None:
        """Raise `BudgetExhausted`, naming period and limit, where one is reached."""
        for name in self._limits:
            if (blown := self._blown(name)) is not None:
                self.tell()
                raise BudgetExhausted(f"the judge budget of this {name} is spent ({blown})")

    def spend(self, *, tokens: int, usd: float | None) -> None:
        for name in self._limits:
            spent = self._current(name)
            spent.calls += 1
            spent.tokens += tokens
            spent.usd += usd or 0.0
        self.tell()

    def tell(self) -> None:
        """Tell the observer how it stands; also when nobody calls, since a period ends by itself."""
        for name in self._limits:
            share = max((s for _, s in self._shares(name)), default=0.0)
            self._observer.budget(period=name, spent_share=share, blown=share >= 1.0)

    def spent(self) -> dict[str, tuple[int, int, int, float]]:
        """By period: its number, and the calls, tokens and US dollars spent in it."""
        return {name: (one.period, one.calls, one.tokens, one.usd) for name, one in self._spent.items()}

    def go_on(self, spent: Mapping[str, tuple[int, int, int, float]]) -> None:
        """Take over what an earlier process had `spent`; periods that are over count for nothing."""
        for name in self._limits.keys() & spent.keys():
            self._spent[name] = _Spent(*spent[name])

    def _current(self, name: str) -> _Spent:
        period = int(self._unix_seconds() // self._limits[name][0])
        if self._spent[name].period != period:
            self._spent[name] = _Spent(period)
        return self._spent[name]

    def _shares(self, name: str) -> list[tuple[str, float]]:
        limits, spent = self._limits[name][1], self._current(name)
        pairs = (
            ("calls", spent.calls, limits.calls),
            ("tokens", spent.tokens, limits.tokens),
            ("usd", spent.usd, limits.usd),
        )
        return [(what, used / limit if limit > 0 else 1.0) for what, used, limit in pairs if limit is not None]

    def _blown(self, name: str) -> str | None:
        return next((what for what, share in self._shares(name) if share >= 1.0), None)

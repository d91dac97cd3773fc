"""The judge as one object: options in, results out."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Self

import httpx

from scorers.interaction import Interaction
from scorers.judge.cache import VerdictCache
from scorers.judge.canary import CanaryCase, CanaryReport, canary_cases, run_canary
from scorers.judge.check import CheckReport, check
from scorers.judge.client import Address, Endpoint, Runtime
from scorers.judge.keys import FixedKey, KeyProvider, key_provider
from scorers.judge.limits import Budget, BudgetLimits
from scorers.judge.observer import BreakerState, SilentObserver
from scorers.judge.options import BudgetPeriod, JudgeOptions
from scorers.judge.planner import Planner
from scorers.judge.transport import make_transport, proxy_from
from scorers.outcome import Result
from scorers.run import fingerprint, judge_interaction
from scorers.scorer import JudgedScorer


@dataclass(frozen=True, slots=True)
class JudgedMetric:
    """One metric that the judge gives, with the version and fingerprint of what measures it."""

    metric: str
    version: str
    fingerprint: str


class Judge:
    """Scores interactions by asking an LLM. Made anywhere; used, and closed, inside one event loop.

    `environ` is the composition root's environment, in which `api_key.env` and proxies are looked up. `secret` keys
    the verdict cache and the fences; replicas need not share it. `endpoints` (chat, embeddings) replaces those that
    the options name, for callers that have their own. `budget` replaces the options', for judges that share one.
    """

    def __init__(
        self,
        options: JudgeOptions,
        scorers: Sequence[JudgedScorer],
        *,
        environ: Mapping[str, str] | None = None,
        runtime: Runtime | None = None,
        secret: bytes | None = None,
        endpoints: tuple[Endpoint, Endpoint | None] | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.options = options
        self.scorers = tuple(scorers)
        self._fingerprints = {
            scorer.info.name: fingerprint(scorer, model=options.model, plan=options.plan)
            for scorer in self.scorers
        }
        self._runtime = runtime or Runtime(SilentObserver())
        environ = environ if environ is not None else {}
        self._secret = secret = secret or secrets.token_bytes(32)
        monotonic = self._runtime.monotonic
        self._transports: list[httpx.AsyncBaseTransport] = []
        self._environ = environ
        self.budget = budget or Budget(
            hour=_limits(options.budget.hour, options.budget.share),
            day=_limits(options.budget.day, options.budget.share),
            unix_seconds=self._runtime.unix_seconds,
            observer=self._runtime.observer,
        )
        self.chat, self.embeddings = endpoints if endpoints is not None else self._endpoints()
        self._planner = Planner(
            chat=self.chat,
            embeddings=self.embeddings,
            cache=VerdictCache(
                secret=secret,
                max_entries=options.cache_entries,
                ttl_seconds=options.cache_ttl_seconds,
                monotonic=monotonic,
            ),
            options=options,
            observer=self._runtime.observer,
            secret=secret,
        )

    def _endpoints(self) -> tuple[Endpoint, Endpoint | None]:
        options, environ, monotonic = self.options, self._environ, self._runtime.monotonic
        keys = key_provider(options.api_key, environ=environ, monotonic=monotonic)
        chat = self._endpoint(options.name, options.base_url, options.model, keys)
        if options.embeddings is None:
            return chat, None
        own = options.embeddings.api_key
        base_url = options.embeddings.base_url or options.base_url
        if own is not None:
            keys = key_provider(own, environ=environ, monotonic=monotonic)
        elif httpx.URL(base_url).netloc != httpx.URL(options.base_url).netloc:
            keys = FixedKey(None)  # the judge's key is not for others
        return chat, self._endpoint(f"{options.name}_embeddings", base_url, options.embeddings.model, keys)

    def _endpoint(self, name: str, base_url: str, model: str, keys: KeyProvider) -> Endpoint:
        options = self.options
        proxy = options.proxy or (proxy_from(self._environ, base_url) if options.proxy_from_env else None)
        transport = make_transport(
            url=base_url, ca_file=options.ca_file, proxy=proxy, max_connections=options.max_concurrency
        )
        self._transports.append(transport)
        return Endpoint(Address(name, base_url, model, keys), options, transport, self.budget, self._runtime)

    @property
    def metrics(self) -> tuple[JudgedMetric, ...]:
        """Every metric of which `score` gives a result, in its order."""
        return tuple(
            JudgedMetric(metric, scorer.info.version, self._fingerprints[scorer.info.name])
            for scorer in self.scorers
            for metric in scorer.info.gives
        )

    def available(self) -> bool:
        """False while the circuit breaker of the chat endpoint lets no call pass."""
        return self.chat.breaker.seconds_until_probe() == 0.0

    def capacity(self) -> int:
        """How many interactions keep the chat endpoint busy: as many as calls may be in flight to it now. More may be
        judged at a time; their deadlines then pass while their calls wait for each other."""
        return self.chat.concurrency.limit

    def down_because(self) -> str:
        """The cause that holds the breaker open (auth, quota, model_unknown, overloaded, unreachable), or ""."""
        return self.chat.breaker.cause if self.chat.breaker.state is not BreakerState.CLOSED else ""

    async def score(
        self, interaction: Interaction, deadline_seconds: float | None = None, *, attempt: int = 0
    ) -> list[Result]:
        """One result for each of `metrics`, within `deadline_seconds` (and the configured one). Never raises.

        `attempt` above 0 is a repeat on purpose, which bypasses the cache.
        """
        allowed = self.options.deadline_seconds
        if deadline_seconds is not None:
            allowed = min(allowed, deadline_seconds)
        return await judge_interaction(
            self.scorers,
            interaction,
            self._planner,
            fingerprints=self._fingerprints,
            deadline=self._runtime.monotonic() + allowed,
            attempt=attempt,
        )

    async def check(self, deadline_seconds: float = 60.0) -> CheckReport:
        """Whether the endpoints answer, in which form, and whether embeddings tell near from far. Never raises."""
        deadline = self._runtime.monotonic() + deadline_seconds
        return await check(self.chat, self.embeddings, secret=self._secret, deadline=deadline)

    async def canary(self, cases: Sequence[CanaryCase] | None = None) -> CanaryReport:
        """Score planted cases, past the cache, and say how many came out as known. Never raises."""
        return await run_canary(partial(self.score, attempt=1), canary_cases() if cases is None else cases)

    async def close(self) -> None:
        """Close all connections; may be called twice."""
        for transport in self._transports:
            await transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _limits(period: BudgetPeriod, share: float) -> BudgetLimits:
    return BudgetLimits(
        calls=None if period.calls is None else int(period.calls * share),
        tokens=None if period.tokens is None else int(period.tokens * share),
        usd=None if period.usd is None else period.usd * share,
    )

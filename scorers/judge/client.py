"""One endpoint: chat completions and embeddings, with retries, deadlines, limits and what was learned about it."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import httpx

from scorers.errors import (
    BadReply,
    DeadlineExceeded,
    FormRefused,
    JudgeAuth,
    JudgeError,
    JudgeModelUnknown,
    JudgeOverloaded,
    JudgeQuota,
    JudgeRefused,
    JudgeUnreachable,
    PromptTooLong,
)
from scorers.judge.form import Form
from scorers.judge.keys import KeyProvider
from scorers.judge.limits import Breaker, Budget, Concurrency
from scorers.judge.marker import HEADER, HEADER_VALUE
from scorers.judge.observer import CallKind, CallOutcome, CallRecord, Observer
from scorers.judge.options import JudgeOptions
from scorers.judge.prices import cost_usd
from scorers.judge.tokens import estimate_tokens
from scorers.judge.transport import TRANSPORT_ERRORS, classify
from scorers.judge.wire import (
    ChatReply,
    Dialect,
    chat_body,
    complaint_of,
    embeddings_body,
    error_of,
    read_chat,
    read_embeddings,
)
from scorers.outcome import Usage

_MAX_BODY_BYTES = 8 << 20
"""A longer reply is no answer to our questions."""
_T = TypeVar("_T")
Vector = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Runtime:
    """What the client takes from outside, so that tests can move time and fix chance."""

    observer: Observer
    monotonic: Callable[[], float] = time.monotonic
    unix_seconds: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: random.Random = field(default_factory=random.Random)


@dataclass(frozen=True, slots=True)
class Address:
    """Where and as whom an endpoint is called. `name` is its name in metrics; `url` has no query."""

    name: str
    base_url: str
    model: str
    keys: KeyProvider


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens of one HTTP call; `estimated` where we counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class _Sent:
    """How one exchange ended. `maybe_billed`: no answer, though the endpoint may have worked on it."""

    status: int = 0
    body: bytes = b""
    error: JudgeError | None = None
    outcome: CallOutcome = CallOutcome.OK
    maybe_billed: bool = False
    seconds: float = 0.0


class Endpoint:
    """Calls one endpoint. Its state (dialect, concurrency, breaker) is this process' own; one event loop only."""

    def __init__(
        self,
        address: Address,
        options: JudgeOptions,
        http: httpx.AsyncBaseTransport,
        budget: Budget,
        runtime: Runtime,
    ) -> None:
        self.address = address
        self.dialect = Dialect()
        self.window_tokens = options.window_tokens
        self._options = options
        self._http = http
        self._budget = budget
        self._runtime = runtime
        self._pause_until = 0.0
        query = f"?api-version={options.api_version}" if options.api_version else ""
        base = address.base_url.rstrip("/")
        self._urls = {path: httpx.URL(f"{base}/{path}{query}") for path in ("chat/completions", "embeddings")}
        self._headers = {name.lower(): value for name, value in options.headers.items()} | {
            "content-type": "application/json",
            "accept": "application/json",
            HEADER: HEADER_VALUE,
        }
        observer = runtime.observer
        self.concurrency = Concurrency(
            start=options.start_concurrency,
            maximum=options.max_concurrency,
            on_change=lambda limit: observer.concurrency_limit(address.name, limit),
        )
        self.breaker = Breaker(
            endpoint=address.name,
            host=httpx.URL(base).netloc.decode("ascii"),
            threshold=options.breaker_failures,
            pause_seconds=options.breaker_pause_seconds,
            monotonic=runtime.monotonic,
            observer=observer,
        )

    async def chat(self, form: Form, *, output_tokens: int, deadline: float) -> tuple[ChatReply, Usage]:
        """Complete one chat. `deadline` is on the runtime's monotonic clock. Raises a `JudgeError`."""
        options = self._options
        prompt_tokens = estimate_tokens(form.system) + estimate_tokens(form.user)

        def body(dialect: Dialect) -> bytes:
            return chat_body(
                model=self.address.model,
                system=form.system,
                user=form.user,
                schema=form.schema,
                max_output_tokens=output_tokens,
                temperature=options.temperature,
                seed=options.seed,
                system_role=options.system_role,
                dialect=dialect,
                extra=options.extra_body,
            )

        def read(raw: bytes) -> tuple[ChatReply, Spent]:
            reply = read_chat(raw)
            known = reply.input_tokens is not None and reply.output_tokens is not None
            used = reply.input_tokens if reply.input_tokens is not None else prompt_tokens
            made = reply.output_tokens if reply.output_tokens is not None else estimate_tokens(reply.text)
            return reply, Spent(used, made, reply.cached_tokens, estimated=not known)

        return await self._ask(
            "chat/completions",
            CallKind.CHAT,
            body=body,
            read=read,
            prompt_tokens=prompt_tokens,
            deadline=deadline,
        )

    async def embed(self, texts: Sequence[str], *, deadline: float) -> tuple[tuple[Vector, ...], Usage]:
        """One vector per text, in order. Raises a `JudgeError`."""
        prompt_tokens = sum(estimate_tokens(text) for text in texts)
        raw_body = embeddings_body(model=self.address.model, texts=texts)

        def read(raw: bytes) -> tuple[tuple[Vector, ...], Spent]:
            reply = read_embeddings(raw, expected=len(texts))
            used = reply.input_tokens if reply.input_tokens is not None else prompt_tokens
            return reply.vectors, Spent(used, 0, estimated=reply.input_tokens is None)

        return await self._ask(
            "embeddings",
            CallKind.EMBEDDINGS,
            body=lambda _: raw_body,
            read=read,
            prompt_tokens=prompt_tokens,
            deadline=deadline,
        )

    async def _ask(
        self,
        path: str,
        kind: CallKind,
        *,
        body: Callable[[Dialect], bytes],
        read: Callable[[bytes], tuple[_T, Spent]],
        prompt_tokens: int,
        deadline: float,
    ) -> tuple[_T, Usage]:
        """Try until there is an answer, or a reason to stop. Every try is counted and paid for, also where the last
        one fails: a `JudgeError` carries what was `spent`."""
        bill: list[Usage] = []
        try:
            answer = await self._until_answered(
                path, kind, body=body, read=read, prompt_tokens=prompt_tokens, deadline=deadline, bill=bill
            )
        except JudgeError as error:
            error.spent = _total(bill)
            raise
        return answer, _total(bill)

    async def _until_answered(
        self,
        path: str,
        kind: CallKind,
        *,
        body: Callable[[Dialect], bytes],
        read: Callable[[bytes], tuple[_T, Spent]],
        prompt_tokens: int,
        deadline: float,
        bill: list[Usage],
    ) -> _T:
        dialect, key = self.dialect, await self._key(deadline)
        attempt = doubtful = 0
        refreshed = False
        while True:
            attempt += 1
            self._budget.check()
            await self._wait_for_pause(deadline)
            may_refresh = key is not None and not refreshed
            sent = await self._send(path, body(dialect), key, deadline, forgive_auth=may_refresh)
            spent = Spent(estimated=True)
            error = sent.error
            if error is None:
                try:
                    answer, spent = read(sent.body)
                except JudgeError as unreadable:
                    error = unreadable
                    spent = Spent(prompt_tokens, 0, estimated=True)
            elif sent.maybe_billed:
                spent = Spent(prompt_tokens, 0, estimated=True)
            bill.append(self._account(kind, sent, error, spent))
            if error is None:
                self.dialect = dialect  # what worked is remembered
                return answer
            if isinstance(error, JudgeAuth) and may_refresh:
                refreshed = True
                fresh = await self._key(deadline, rejected=key)
                if fresh != key:
                    key = fresh
                    continue
                self.breaker.failed(error)
            if isinstance(error, FormRefused):
                lower = dialect.below(complaint_of(sent.body)) if kind is CallKind.CHAT else None
                if lower is not None:
                    dialect = lower
                    attempt -= 1
                    continue
            doubtful += sent.maybe_billed or isinstance(error, BadReply)
            if not error.retry or attempt >= self._options.max_attempts or doubtful > 1:
                raise error
            await self._back_off(error, attempt, deadline)

    async def _key(self, deadline: float, rejected: str | None = None) -> str | None:
        try:
            async with asyncio.timeout(max(0.0, deadline - self._runtime.monotonic())):
                return await self.address.keys.key(rejected=rejected)
        except TimeoutError:
            raise DeadlineExceeded("the deadline passed while the key was fetched") from None

    async def _wait_for_pause(self, deadline: float) -> None:
        """Hold while the endpoint has asked everybody to wait; fail at once if that outlasts the deadline."""
        now = self._runtime.monotonic()
        if now >= deadline:
            raise DeadlineExceeded("the deadline of this interaction has passed")
        if self._pause_until > now:
            if self._pause_until >= deadline:
                raise JudgeOverloaded("the endpoint asked to wait for longer than the deadline allows")
            await self._runtime.sleep(self._pause_until - now)

    async def _back_off(self, error: JudgeError, attempt: int, deadline: float) -> None:
        """Full jitter, but never before the time that the endpoint named (which then holds for every call)."""
        options, now = self._options, self._runtime.monotonic()
        ceiling = min(options.max_backoff_seconds, options.backoff_seconds * 2 ** (attempt - 1))
        delay = self._runtime.random.uniform(0, ceiling)
        if isinstance(error, JudgeOverloaded) and error.retry_after_seconds is not None:
            self._pause_until = max(self._pause_until, now + error.retry_after_seconds)
            delay += error.retry_after_seconds
        if now + delay >= deadline:
            raise error
        await self._runtime.sleep(delay)

    async def _send(
        self, path: str, body: bytes, key: str | None, deadline: float, *, forgive_auth: bool
    ) -> _Sent:
        """One HTTP exchange inside concurrency limit, breaker and time limits.

        `forgive_auth`: a rejected key does not open the breaker yet, since another one is tried first.
        """
        ticket = await self._enter(deadline)
        sent: _Sent | None = None
        started = self._runtime.monotonic()
        try:
            self.breaker.check()
            allowed = min(self._options.call_timeout_seconds, deadline - self._runtime.monotonic())
            try:
                async with asyncio.timeout(allowed):
                    sent = await self._exchange(path, body, key)
            except TimeoutError:
                late = self._runtime.monotonic() >= deadline
                error: JudgeError = JudgeOverloaded(f"no answer within {allowed:.0f} s")
                if late:
                    error = DeadlineExceeded("the deadline passed while the endpoint was answering")
                sent = _Sent(error=error, outcome=CallOutcome.TIMEOUT, maybe_billed=True)
            except TRANSPORT_ERRORS as failure:
                error = classify(failure)
                billed = isinstance(error, JudgeUnreachable) and error.maybe_billed
                outcome = CallOutcome.DISCONNECTED if billed else CallOutcome.UNREACHABLE
                sent = _Sent(error=error, outcome=outcome, maybe_billed=billed)
            if sent.error is None:
                self.breaker.succeeded()
            elif isinstance(sent.error, DeadlineExceeded) or (forgive_auth and isinstance(sent.error, JudgeAuth)):
                self.breaker.abandoned()
            else:
                self.breaker.failed(sent.error)
            return replace(sent, seconds=self._runtime.monotonic() - started)
        except JudgeError:
            raise  # by the breaker itself, which waits for another call's probe
        except BaseException:
            self.breaker.abandoned()
            raise
        finally:
            overloaded = sent is not None and isinstance(sent.error, JudgeOverloaded)
            worked = sent is not None and sent.error is None
            self.concurrency.release(ticket, overloaded=overloaded, worked=worked)

    async def _enter(self, deadline: float) -> int:
        try:
            async with asyncio.timeout(max(0.0, deadline - self._runtime.monotonic())):
                return await self.concurrency.acquire()
        except TimeoutError:
            raise DeadlineExceeded("the deadline passed while the call waited for its turn") from None

    async def _exchange(self, path: str, body: bytes, key: str | None) -> _Sent:
        request = httpx.Request("POST", self._urls[path], content=body, headers=self._headers_with(key))
        response = await self._http.handle_async_request(request)
        try:
            chunks, size = [], 0
            async for chunk in response.aiter_bytes():
                chunks.append(chunk)
                size += len(chunk)
                if size > _MAX_BODY_BYTES:
                    return _Sent(
                        status=response.status_code,
                        error=BadReply(f"the reply is over {_MAX_BODY_BYTES >> 20} MiB"),
                        outcome=CallOutcome.BAD_REPLY,
                        maybe_billed=True,
                    )
        finally:
            await response.aclose()
        raw = b"".join(chunks)
        if 200 <= response.status_code < 300:
            return _Sent(response.status_code, raw)
        error = error_of(response.status_code, response.headers, raw, unix_seconds=self._runtime.unix_seconds())
        return _Sent(response.status_code, raw, error=error, outcome=_outcome(error))

    def _headers_with(self, key: str | None) -> dict[str, str]:
        headers = dict(self._headers)
        if key is not None:
            name = self._options.api_key_header.lower()
            headers[name] = f"Bearer {key}" if name == "authorization" else key
        return headers

    def _account(self, kind: CallKind, sent: _Sent, error: JudgeError | None, spent: Spent) -> Usage:
        cost = cost_usd(
            self._options.prices,
            self.address.model,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            cached_tokens=spent.cached_tokens,
        )
        outcome = sent.outcome if sent.error is error else _outcome(error)
        record = CallRecord(
            self.address.name,
            kind,
            outcome,
            sent.seconds,
            spent.input_tokens,
            spent.output_tokens,
            spent.cached_tokens,
            cost,
            spent.estimated,
        )
        self._runtime.observer.call(record)
        self._budget.spend(tokens=spent.input_tokens + spent.output_tokens, usd=cost)
        counted = bool(spent.input_tokens or spent.output_tokens)
        return Usage(1, spent.input_tokens, spent.output_tokens, cost, estimated=spent.estimated and counted)


def _total(bill: Sequence[Usage]) -> Usage:
    total = Usage()
    for usage in bill:
        total = add_usage(total, usage)
    return total


def add_usage(first: Usage, second: Usage) -> Usage:
    """The sum; its cost is unknown as soon as one call that used tokens has an unknown cost."""
    if not first.calls and not first.estimated:
        return second  # nothing was spent yet
    costs = [usage.cost_usd for usage in (first, second) if usage.calls]
    known = [cost for cost in costs if cost is not None]
    return Usage(
        first.calls + second.calls,
        first.input_tokens + second.input_tokens,
        first.output_tokens + second.output_tokens,
        sum(known) if costs and len(known) == len(costs) else None,
        first.estimated or second.estimated,
    )


_OUTCOMES: tuple[tuple[type[JudgeError], CallOutcome], ...] = (
    (JudgeAuth, CallOutcome.AUTH),
    (JudgeQuota, CallOutcome.QUOTA),
    (JudgeModelUnknown, CallOutcome.MODEL_UNKNOWN),
    (PromptTooLong, CallOutcome.TOO_LONG),
    (JudgeRefused, CallOutcome.REFUSED),
    (JudgeOverloaded, CallOutcome.OVERLOADED),
    (BadReply, CallOutcome.BAD_REPLY),
)


def _outcome(error: JudgeError | None) -> CallOutcome:
    if error is None:
        return CallOutcome.OK
    return next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), CallOutcome.UNREACHABLE)

"""Recorded requests to a running groundwatch over OTLP/HTTP, marked as replayed: what `replay --into-sums` does."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

import httpx

from collector.commands.common import through_proxies
from collector.otlp import encode, schema
from collector.otlp.batch import Batch
from collector.otlp.model import Encoding, RawItem
from collector.records.found import REPLAYED_ATTRIBUTE
from collector.records.trace import ReleasedTrace

_TYPES = {Encoding.PROTO: "application/x-protobuf", Encoding.JSON: "application/json"}
_LATER = frozenset({429, 502, 503, 504})
_LONGEST_WAIT_SECONDS = 30.0
_TRIES = 20
_TIMEOUT_SECONDS = 60.0


class NotTaken(Exception):
    """The other side does not take a request; the text says which, why, and what to change."""


@dataclass(slots=True)
class Sent:
    """What was sent. `rejected` are spans and log records that the other side could not use; `records` were plain
    records, which OTLP can not carry."""

    requests: int = 0
    items: int = 0
    rejected: int = 0
    records: int = 0


async def resend(
    items: AsyncIterator[Batch | ReleasedTrace],
    url: str,
    *,
    headers: Mapping[str, str],
    sent: Sent,
    requests_per_second: float | None = None,
    step: Callable[[], object] = lambda: None,
    sleep: Callable[[float], object] = time.sleep,
) -> None:
    """Post everything to `url` (scheme, host and port), again where it says so; counts in `sent`. Raises NotTaken."""
    next_at = time.monotonic()
    with httpx.Client(timeout=_TIMEOUT_SECONDS, trust_env=through_proxies(url), headers=dict(headers)) as client:
        async for item in items:
            if isinstance(item, ReleasedTrace):
                sent.records += 1
                continue
            for encoding, body in encode.encode_items(_marked(item), item.signal):
                if requests_per_second is not None:
                    sleep(max(0.0, next_at - time.monotonic()))
                    next_at = max(next_at, time.monotonic()) + 1 / requests_per_second
                answer = _post(client, f"{url.rstrip('/')}/v1/{item.signal}", encoding, body, sleep)
                sent.requests += 1
                sent.rejected += _rejected(answer, encoding)
                step()
            sent.items += len(item)
            sent.rejected += item.rejected


def _post(
    client: httpx.Client, url: str, encoding: Encoding, body: bytes, sleep: Callable[[float], object]
) -> httpx.Response:
    wait, problem = 1.0, ""
    for _ in range(_TRIES):
        try:
            answer = client.post(url, content=body, headers={"content-type": _TYPES[encoding]})
        except httpx.TransportError as error:
            problem = f"no answer ({type(error).__name__}): is groundwatch running there?"
        else:
            if answer.status_code == 200:
                return answer
            problem = f"answered {answer.status_code}: {answer.text.strip()[:300]}"
            if answer.status_code not in _LATER:
                raise NotTaken(f"{url}: a request of {len(body)} bytes was not taken; it {problem}")
            wait = _asked_wait(answer, wait)
        sleep(min(wait, _LONGEST_WAIT_SECONDS))
        wait *= 2
    raise NotTaken(f"{url}: given up after {_TRIES} tries; {problem}")


def _asked_wait(answer: httpx.Response, otherwise: float) -> float:
    try:
        return max(0.0, float(answer.headers["retry-after"]))
    except (KeyError, ValueError):
        return otherwise


def _rejected(answer: httpx.Response, encoding: Encoding) -> int:
    """How many items of a request could not be used (partial success)."""
    if encoding is Encoding.PROTO:
        return int(schema.Response.FromString(answer.content).partial_success.rejected)
    partial = (answer.json() or {}).get("partialSuccess") or {}
    return int(partial.get("rejectedSpans") or partial.get("rejectedLogRecords") or 0)


def _marked(batch: Batch) -> list[RawItem]:
    """The items, whose resources say that they are replayed."""
    return [
        RawItem(item, marked, group.scope, group.encoding)
        for group in batch.groups
        for marked in (mark_resource(group.resource, group.encoding),)
        for item in group.items
    ]


def mark_resource(resource: bytes, encoding: Encoding) -> bytes:
    """A resource with the attribute `groundwatch.replayed`: true."""
    if encoding is Encoding.JSON:
        value = json.loads(resource or b"{}")
        mark = {"key": REPLAYED_ATTRIBUTE, "value": {"boolValue": True}}
        value["attributes"] = [*(value.get("attributes") or []), mark]
        return json.dumps(value).encode()
    key = REPLAYED_ATTRIBUTE.encode()
    # KeyValue: field 1 the key, field 2 an AnyValue whose field 2 is true; it is one more of the resource's field 1.
    pair = b"\x0a%c%b\x12\x02\x10\x01" % (len(key), key)
    return resource + b"\x0a%c%b" % (len(pair), pair)

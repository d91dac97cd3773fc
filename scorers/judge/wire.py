"""The OpenAI-compatible wire format: request bodies, replies, and what an error response means. Pure."""

from __future__ import annotations

import email.utils
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import msgspec

from scorers.errors import (
    BadReply,
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


class Rung(StrEnum):
    """How the form of a reply is asked for; the ladder goes down one rung at a time."""

    JSON_SCHEMA = "json_schema"
    OBJECT_WITH_SCHEMA = "object_with_schema"  # llama.cpp's own form: json_object that carries the schema
    JSON_OBJECT = "json_object"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an endpoint is known to accept; learned from its 400s and remembered."""

    rung: Rung = Rung.JSON_SCHEMA
    max_tokens_name: str = "max_tokens"
    temperature: bool = True
    seed: bool = True

    def below(self, complaint: str) -> Dialect | None:
        """The next thing to try after a 400 with this (lower-cased) complaint; None when nothing is left.

        Named parameters are mended first; a complaint that names none is taken to be about the response
        format, since gateways rarely say so.
        """
        if (
            "max_tokens" in complaint
            and "max_completion_tokens" in complaint
            and self.max_tokens_name == "max_tokens"
        ):
            return replace(self, max_tokens_name="max_completion_tokens")
        if "temperature" in complaint and self.temperature:
            return replace(self, temperature=False)
        if "'seed'" in complaint or '"seed"' in complaint or " seed " in complaint:
            return replace(self, seed=False) if self.seed else None
        rungs = list(Rung)
        lower = rungs.index(self.rung) + 1
        return replace(self, rung=rungs[lower]) if lower < len(rungs) else None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A chat completion. Token counts are None where the endpoint reports none; `truncated`: cut by length."""

    text: str
    truncated: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int = 0
    model: str | None = None


@dataclass(frozen=True, slots=True)
class EmbeddingReply:
    vectors: tuple[tuple[float, ...], ...]
    input_tokens: int | None = None


class _Vector(msgspec.Struct):
    embedding: list[float]
    index: int | None = None


class _Vectors(msgspec.Struct):
    data: list[_Vector]
    usage: dict[str, object] | None = None


_VECTORS = msgspec.json.Decoder(_Vectors)


def chat_body(
    *,
    model: str,
    system: str,
    user: str,
    schema: Mapping[str, object],
    max_output_tokens: int,
    temperature: float,
    seed: int | None,
    system_role: str,
    dialect: Dialect,
    extra: Mapping[str, object],
) -> bytes:
    """The body of a chat request. `extra` is the user's own and wins over everything but the messages."""
    messages = [{"role": system_role, "content": system}, {"role": "user", "content": user}]
    if system_role == "none":
        messages = [{"role": "user", "content": f"{system}\n\n{user}"}]
    body: dict[str, object] = {"model": model, dialect.max_tokens_name: max_output_tokens}
    if dialect.temperature:
        body["temperature"] = temperature
    if dialect.seed and seed is not None:
        body["seed"] = seed
    if dialect.rung is Rung.JSON_SCHEMA:
        wrapped = {"name": "evaluation", "strict": True, "schema": schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wrapped}
    elif dialect.rung is Rung.OBJECT_WITH_SCHEMA:
        body["response_format"] = {"type": "json_object", "schema": schema}
    elif dialect.rung is Rung.JSON_OBJECT:
        body["response_format"] = {"type": "json_object"}
    return _encode({**body, **extra, "messages": messages})


def embeddings_body(*, model: str, texts: Sequence[str]) -> bytes:
    return _encode({"model": model, "input": list(texts), "encoding_format": "float"})


def _encode(body: Mapping[str, object]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:  # half of a surrogate pair, which has no UTF-8
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def read_chat(raw: bytes) -> ChatReply:
    """Read a chat completion, streamed unasked or not. Raises `BadReply`, or `JudgeRefused` for a refusal."""
    text = raw.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    body = _stream(text) if text.startswith(("data:", "event:", ":")) else _object(text)
    if "error" in body and not body.get("choices"):
        raise BadReply("the endpoint answered 200 with an error inside")
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None
    message = choice.get("message") if choice is not None else None
    if choice is None or not isinstance(message, dict):
        raise BadReply("the body is no chat completion (no choices[0].message)")
    finish = choice.get("finish_reason")
    if finish == "content_filter" or (message.get("refusal") and not message.get("content")):
        raise JudgeRefused("the endpoint's content filter, or the model, refused this interaction")
    content = message.get("content")
    if isinstance(content, list):  # content parts
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    usage = body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    details = usage.get("prompt_tokens_details")
    model = body.get("model")
    return ChatReply(
        text=content if isinstance(content, str) else "",
        truncated=finish == "length",
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=(_count(details.get("cached_tokens")) or 0) if isinstance(details, dict) else 0,
        model=model if isinstance(model, str) else None,
    )


def read_embeddings(raw: bytes, *, expected: int) -> EmbeddingReply:
    """Read an embeddings reply, in the order of the inputs. Raises `BadReply` for anything doubtful."""
    try:
        body = _VECTORS.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        raise BadReply("the body is no embeddings reply") from None
    if len(body.data) != expected:
        raise BadReply(f"the embeddings reply holds {len(body.data)} vectors for {expected} texts")
    vectors = {p if e.index is None else e.index: tuple(e.embedding) for p, e in enumerate(body.data)}
    if sorted(vectors) != list(range(expected)) or len({len(vector) for vector in vectors.values()}) != 1:
        raise BadReply("the vectors of the embeddings reply do not fit together")
    if not all(vector and math.isfinite(sum(vector)) for vector in vectors.values()):
        raise BadReply("a vector of the embeddings reply is empty or not finite")
    tokens = _count((body.usage or {}).get("prompt_tokens"))
    return EmbeddingReply(tuple(vectors[index] for index in range(expected)), tokens)


def _object(text: str) -> dict[str, object]:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        kind = "HTML" if text[:200].lstrip().startswith("<") else "cut or malformed"
        raise BadReply(f"the body is not JSON ({kind})") from None
    if not isinstance(body, dict):
        raise BadReply("the body is JSON, but no object")
    return body


def _stream(text: str) -> dict[str, object]:
    """Join server-sent events, for endpoints that stream though nobody asked."""
    parts: list[str] = []
    finish: object = None
    last: dict[str, object] = {}
    for line in text.splitlines():
        if not line.startswith("data:") or line[5:].strip() in ("", "[DONE]"):
            continue
        chunk = _object(line[5:])
        last = {**last, **{key: value for key, value in chunk.items() if value is not None}}
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            continue
        delta = choices[0].get("delta") or choices[0].get("message")
        if isinstance(delta, dict) and isinstance(delta.get("content"), str):
            parts.append(delta["content"])
        finish = choices[0].get("finish_reason") or finish
    if finish is None:
        raise BadReply("the endpoint streamed unasked, and the stream was cut")
    return {**last, "choices": [{"message": {"content": "".join(parts)}, "finish_reason": finish}]}


def _count(raw: object) -> int | None:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < 1 << 40 else None


_QUOTA = (
    "insufficient_quota",
    "billing",
    "credit balance",
    "quota exceeded",
    "exceeded your current quota",
    "payment",
)
_TOO_LONG = (
    "context_length",
    "context length",
    "context window",
    "maximum context",
    "too many tokens",
    "input is too long",
    "prompt is too long",
    "exceed context",
)
_FILTER = ("content_filter", "content management policy", "content_policy", "responsibleai", "safety system")
_FORM = ("response_format", "response format", "json_schema", "validation error", "unsupported parameter")
_NO_MODEL = (
    "model_not_found",
    "does not exist",
    "deploymentnotfound",
    "unknown model",
    "model not found",
    "no such model",
    "not found, try pulling",
    "invalid model",
)


def error_of(status: int, headers: Mapping[str, str], raw: bytes, *, unix_seconds: float) -> JudgeError:
    """What a response that is not 2xx means. The message names the status only, never the body's words."""
    complaint = complaint_of(raw)
    code = f"HTTP {status}"
    if status == 402 or (status in (400, 403, 429) and any(mark in complaint for mark in _QUOTA)):
        return JudgeQuota(f"{code}: the account's quota or credit is spent")
    if status in (401, 403):
        return JudgeAuth(f"{code}: the key is missing, wrong, expired or not allowed")
    if status == 413 or (status in (400, 422, 500) and any(mark in complaint for mark in _TOO_LONG)):
        return PromptTooLong(f"{code}: the prompt is over the model's context window")
    if status in (400, 422, 451) and any(mark in complaint for mark in _FILTER):
        return JudgeRefused(f"{code}: the endpoint's content filter refused this interaction")
    if status == 404 or (status in (400, 422) and any(mark in complaint for mark in _NO_MODEL)):
        return JudgeModelUnknown(f"{code}: this endpoint does not know the model, or base_url has a wrong path")
    if status in (500, 501) and any(mark in complaint for mark in _FORM):  # some servers validate this way
        return FormRefused(f"{code}: the endpoint rejects the form of the request")
    if status in (408, 409, 425, 429) or status >= 500:
        return JudgeOverloaded(f"{code}: overloaded or failing", _retry_after(headers, unix_seconds))
    if 300 <= status < 400:
        return JudgeUnreachable(f"{code}: the endpoint redirects; put the final address into base_url")
    if status >= 400:
        return FormRefused(f"{code}: the endpoint rejects the request")
    return BadReply(f"{code}: unexpected status")


def complaint_of(raw: bytes) -> str:
    """The error body in lower case, bounded, for matching only."""
    return raw[:4000].decode("utf-8", "replace").lower()


def _retry_after(headers: Mapping[str, str], unix_seconds: float) -> float | None:
    """Seconds to wait by `retry-after-ms` or `Retry-After` (seconds or a date); None where absent or absurd."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        raw = headers.get(name)
        if raw is None:
            continue
        try:
            seconds = float(raw) * factor
        except ValueError:
            try:
                seconds = email.utils.parsedate_to_datetime(raw).timestamp() - unix_seconds
            except (ValueError, OverflowError):
                continue
        if math.isfinite(seconds) and seconds < 86400:
            return max(0.0, seconds)
    return None

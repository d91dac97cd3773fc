"""Cases as bytes: plain JSON, compressed where it is kept."""

from __future__ import annotations

import math
import re
import zlib
from dataclasses import replace

import msgspec

from collector.review.case import Case

_ENCODER = msgspec.json.Encoder(enc_hook=str)
_DECODER = msgspec.json.Decoder(Case)
_LONE = re.compile("[\ud800-\udfff]")


class BadCase(ValueError):
    """Bytes that are no case; the text says where and why."""


def encode(case: Case) -> bytes:
    """One JSON object. Values that JSON does not know become their text; half surrogate pairs, which UTF-8 can not
    hold, become U+FFFD."""
    try:
        return _ENCODER.encode(case)
    except UnicodeEncodeError:
        return _ENCODER.encode(_mended(msgspec.to_builtins(case, enc_hook=str)))


def decode(body: bytes | str) -> Case:
    """Raises BadCase."""
    try:
        return _DECODER.decode(body)
    except (ValueError, TypeError, RecursionError) as error:  # msgspec's errors are ValueErrors
        raise BadCase(f"no case: {error}") from error


def pack(encoded: bytes) -> bytes:
    """What is kept on disk of `encode`'s bytes."""
    return zlib.compress(encoded)


def unpack(body: bytes) -> Case:
    """Raises BadCase."""
    try:
        return decode(zlib.decompress(body))
    except zlib.error as error:
        raise BadCase(f"no case: {error}") from error


def storable(case: Case) -> tuple[Case, bytes]:
    """The case as it will be read again, and its JSON: without what the store keeps apart (labels, revision). One
    that does not know when it ended has ended when it was stored."""
    ended = case.ended_unix if math.isfinite(case.ended_unix) and case.ended_unix > 0 else case.stored_unix
    case = replace(case, labels=(), revision=0, ended_unix=ended)
    try:
        return case, _ENCODER.encode(case)
    except UnicodeEncodeError:
        encoded = encode(case)
        return decode(encoded), encoded


def _mended(value: object) -> object:
    if isinstance(value, str):
        return _LONE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_mended(key): _mended(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(one) for one in value]
    return value

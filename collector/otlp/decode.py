"""Raw items to decoded spans and log records, the same from both encodings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import DecodeError

from collector.otlp import json_items, proto_items
from collector.otlp.bounds import Item, check_values
from collector.otlp.model import Encoding, LogRecord, RawItem, Resource, Scope, Span

_CACHED = TypeVar("_CACHED")


class MalformedItem(ValueError):
    """A span, log record, resource or scope that can not be decoded; the text says where and why."""


def span(item: RawItem) -> Span:
    """Decode one span whole. Raises `MalformedItem`."""
    return Decoder(max_entries=0).span(item)


def log_record(item: RawItem) -> LogRecord:
    """Decode one log record whole. Raises `MalformedItem`."""
    return Decoder(max_entries=0).log_record(item)


def resource(data: bytes, encoding: Encoding = Encoding.PROTO) -> Resource:
    """Raises `MalformedItem`."""
    try:
        check_values(data, Item.RESOURCE, encoding)
        return proto_items.resource(data) if encoding is Encoding.PROTO else json_items.resource(data)
    except (DecodeError, ValueError) as error:
        raise MalformedItem(f"resource of {len(data)} bytes: {error}") from error


def scope(data: bytes, encoding: Encoding = Encoding.PROTO) -> Scope:
    """Raises `MalformedItem`."""
    try:
        check_values(data, Item.SCOPE, encoding)
        return proto_items.scope(data) if encoding is Encoding.PROTO else json_items.scope(data)
    except (DecodeError, ValueError) as error:
        raise MalformedItem(f"scope of {len(data)} bytes: {error}") from error


class Decoder:
    """Decodes items, and keeps decoded resources and scopes by their bytes: many spans share few of them.

    Each of the two caches holds at most `max_entries` of at most `max_entry_bytes` encoded bytes, and is emptied
    when full. Not for use by several threads at a time.
    """

    def __init__(self, *, max_entries: int = 256, max_entry_bytes: int = 64 * 1024) -> None:
        self._max_entries = max_entries
        self._max_entry_bytes = max_entry_bytes
        self._resources: dict[tuple[bytes, Encoding], Resource] = {}
        self._scopes: dict[tuple[bytes, Encoding], Scope] = {}

    def span(self, item: RawItem) -> Span:
        """Raises `MalformedItem`."""
        of_resource = self._cached(self._resources, resource, item.resource, item.encoding)
        of_scope = self._cached(self._scopes, scope, item.scope, item.encoding)
        make = proto_items.span if item.encoding is Encoding.PROTO else json_items.span
        try:
            check_values(item.data, Item.SPAN, item.encoding)
            return make(item.data, of_resource, of_scope, cut=item.cut)
        except (DecodeError, ValueError) as error:
            raise MalformedItem(f"span of {len(item.data)} bytes: {error}") from error

    def log_record(self, item: RawItem) -> LogRecord:
        """Raises `MalformedItem`."""
        of_resource = self._cached(self._resources, resource, item.resource, item.encoding)
        of_scope = self._cached(self._scopes, scope, item.scope, item.encoding)
        make = proto_items.log_record if item.encoding is Encoding.PROTO else json_items.log_record
        try:
            check_values(item.data, Item.LOG_RECORD, item.encoding)
            return make(item.data, of_resource, of_scope)
        except (DecodeError, ValueError) as error:
            raise MalformedItem(f"log record of {len(item.data)} bytes: {error}") from error

    def _cached(
        self,
        cache: dict[tuple[bytes, Encoding], _CACHED],
        make: Callable[[bytes, Encoding], _CACHED],
        data: bytes,
        encoding: Encoding,
    ) -> _CACHED:
        key = (data, encoding)
        known = cache.get(key)
        if known is not None:
            return known
        made = make(data, encoding)
        if self._max_entries and len(data) <= self._max_entry_bytes:
            if len(cache) >= self._max_entries:
                cache.clear()
            cache[key] = made
        return made

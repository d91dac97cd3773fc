"""`/metrics`: OpenMetrics and the classic text format."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest as classic
from prometheus_client.openmetrics.exposition import generate_latest as openmetrics

from collector.exporters.scrapers import Scrapers
from collector.telemetry.spec import Family, Freezes, Source, Type

_EOF = b"# EOF\n"
_MAX_HEADS = 50_000
"""Names with labels that are kept rendered; releases and segment values come and go over months."""
_GZIP_FROM_BYTES = 1_400  # below one packet, compressing gains nothing


class Format(Enum):
    """A format by its media type and the content type that is answered."""

    OPENMETRICS = ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8")
    TEXT = ("text/plain", "text/plain; version=0.0.4; charset=utf-8")

    @property
    def content_type(self) -> str:
        return self.value[1]


class PrometheusExporter:
    """Renders one registry and the collected families.

    Rendering runs in a thread, so that a scrape does not hold up the event loop, and one scrape at a time, so that
    impatient scrapers can not pile up threads. `before` runs on the loop first (gauges of ages and fill levels).

    `commit`, where given, calls what it is given at a moment whose state it writes down, and tells whether it could;
    the collected families are of the last such moment, so that nothing is shown that a crash could take back.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        sources: Sequence[Source] = (),
        *,
        before: Callable[[], None] | None = None,
        commit: Callable[[Callable[[], None]], Awaitable[bool]] | None = None,
        scrapers: Scrapers | None = None,
    ) -> None:
        self._registry = registry
        self._sources = tuple(sources)
        self._before = before
        self._commit = commit
        self._scrapers = scrapers
        self._committed: list[Callable[[], list[Family]]] = []
        self._one = asyncio.Lock()
        self._heads: dict[tuple[str, tuple[str, ...]], str] = {}

    async def render(
        self, accept: str, accept_encoding: str = "", scraper: str = ""
    ) -> tuple[bytes, dict[str, str]]:
        """The body for one scrape and its headers, by the request's Accept and Accept-Encoding. `scraper` names who
        asks, where it is somebody who comes again."""
        async with self._one:
            began = self._scrapers.begins(scraper) if self._scrapers is not None else 0.0
            if self._before is not None:
                self._before()
            if self._commit is not None:
                await self._freeze(self._commit)
            body = await asyncio.to_thread(self._respond, accept, accept_encoding)
            if self._scrapers is not None:
                self._scrapers.ended(scraper, began)
            return body

    async def _freeze(self, commit: Callable[[Callable[[], None]], Awaitable[bool]]) -> None:
        frozen: list[Callable[[], list[Family]]] = []
        if await commit(lambda: frozen.extend(_frozen(source) for source in self._sources)):
            self._committed = frozen

    def _respond(self, accept: str, accept_encoding: str) -> tuple[bytes, dict[str, str]]:
        fmt = negotiate(accept)
        body = self.text(fmt)
        headers = {"content-type": fmt.content_type, "vary": "Accept, Accept-Encoding"}
        if len(body) >= _GZIP_FROM_BYTES and _quality(accept_encoding, ("gzip", "*")) > 0:
            body = gzip.compress(body, compresslevel=1, mtime=0)
            headers["content-encoding"] = "gzip"
        return body, headers

    def text(self, fmt: Format) -> bytes:
        """The whole exposition, uncompressed. Safe against the writers of instruments and sums; call it from one
        thread at a time."""
        parts = []
        of_now = [source.families for source in self._sources]
        for families in of_now if self._commit is None else self._committed:
            for family in families():
                parts.append(self._family(family, fmt))
                time.sleep(0)  # lets the event loop have the interpreter's lock between families
        own = "".join(parts)
        if fmt is Format.OPENMETRICS:
            registry: bytes = openmetrics(self._registry)  # type: ignore[no-untyped-call]  # prometheus_client leaves it untyped
            return registry.removesuffix(_EOF) + own.encode() + _EOF
        plain: bytes = classic(self._registry)
        return plain + own.encode()

    def _family(self, family: Family, fmt: Format) -> str:
        spec = family.spec
        name = spec.name
        kind = spec.type.value
        if fmt is Format.OPENMETRICS:
            name = name.removesuffix("_total") if spec.type is Type.COUNTER else name
        elif "le" in family.label_names:
            kind = (
                "untyped"  # promtool's lint reserves `le` for histograms; a bare counter with it would be an error
            )
        lines = [f"# HELP {name} {_help(spec.help)}\n# TYPE {name} {kind}\n"]
        heads = self._heads
        for values, value in family.samples:
            if len(heads) > _MAX_HEADS:
                heads.clear()
            head = heads.get((spec.name, values))
            if head is None:
                head = heads[spec.name, values] = _head(spec.name, family.label_names, values)
            lines.append(f"{head}{value!r}\n")
        return "".join(lines)


def _frozen(source: Source) -> Callable[[], list[Family]]:
    if isinstance(source, Freezes):
        return source.freeze()
    families = source.families()
    return lambda: families


def _head(name: str, label_names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = ",".join(f'{label}="{_escape(value)}"' for label, value in zip(label_names, values, strict=True))
    return f"{name}{{{pairs}}} " if pairs else f"{name} "


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def negotiate(accept: str) -> Format:
    """The format that an Accept header prefers; classic text where it names neither, OpenMetrics on a tie between
    the two by name."""
    preferred = _quality(accept, (Format.OPENMETRICS.value[0],))
    plain = _quality(accept, (Format.TEXT.value[0], "text/*"))
    return Format.OPENMETRICS if preferred > 0 and preferred >= plain else Format.TEXT


def _quality(header: str, names: tuple[str, ...]) -> float:
    """Highest q-value that a header gives to one of the names (RFC 9110, 12.4.2); 0 where it names none."""
    best = 0.0
    for item in header.split(","):
        name, *parameters = (part.strip().lower() for part in item.split(";"))
        if name not in names:
            continue
        quality = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    quality = float(parameter[2:])
                except ValueError:
                    quality = 0.0
        best = max(best, quality)
    return best

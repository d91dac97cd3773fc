"""The one environment of the templates: escapes everything, and shows controls that reorder text by their names."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from collector.web.inert import visible

HERE = Path(__file__).parent
_NAME_CHARS = 200


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=select_autoescape(default=True),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        finalize=visible,
    )
    made.filters["utc"] = lambda seconds: f"{_at(seconds):%Y-%m-%d %H:%M} UTC"
    made.filters["iso"] = lambda seconds: f"{_at(seconds):%Y-%m-%dT%H:%M:%SZ}"
    made.filters["shell"] = shlex.quote
    made.filters["short"] = lambda text: _short(str(text))
    made.filters["words"] = lambda text: _short(str(text)).replace("_", " ")
    return made


def _short(text: str) -> str:
    """A name, which nobody makes longer than this to be read."""
    return text if len(text) <= _NAME_CHARS else text[:_NAME_CHARS] + "…"


def _at(seconds: float) -> datetime:
    """The instant, or the nearest end of what a calendar can hold: times come from traces."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0 if not seconds > 0 else 253_402_300_799, UTC)

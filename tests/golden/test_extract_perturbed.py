"""The recordings, damaged on purpose: what limits and losses take away is named, and never replaced by a guess."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from collector.extract.extractor import Extractor
from collector.extract.options import Options
from collector.otlp.model import LogRecord, Span, Value
from tests.golden.extract_measure import Table, compare, load, rows, unpack
from tests.golden.extract_measure import lies as lies_of

Recording = tuple[dict[str, Any], list[Span], list[LogRecord]]
Change = Callable[[Sequence[Span]], list[Span]]


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Recording]:
    base = unpack(tmp_path_factory.mktemp("recordings"))
    return [(row, *load(base, row["files"])) for row in rows()]


def cut_values(limit: int) -> Change:
    """As an SDK with an attribute length limit would have sent it."""

    def short(value: Value) -> Value:
        return value[:limit] if isinstance(value, str) else value

    def change(spans: Sequence[Span]) -> list[Span]:
        return [
            replace(
                span,
                attributes={key: short(value) for key, value in span.attributes.items()},
                events=tuple(
                    replace(event, attributes={key: short(value) for key, value in event.attributes.items()})
                    for event in span.events
                ),
            )
            for span in spans
        ]

    return change


def drop_attributes(limit: int) -> Change:
    """As an SDK with an attribute count limit would have sent it: the oldest are dropped."""

    def change(spans: Sequence[Span]) -> list[Span]:
        return [
            replace(
                span,
                attributes=dict(list(span.attributes.items())[-limit:]),
                dropped_attributes_count=max(0, len(span.attributes) - limit),
            )
            for span in spans
        ]

    return change


def rename(spans: Sequence[Span]) -> list[Span]:
    return [replace(span, name="x", scope=replace(span.scope, name="y")) for span in spans]


def drop_roots(spans: Sequence[Span]) -> list[Span]:
    ids = {span.span_id for span in spans}
    kept = [span for span in spans if span.parent_span_id in ids]
    return kept or list(spans)


def run(recordings: Sequence[Recording], change: Change) -> tuple[Table, list[str]]:
    """The table after a change, and what was given out as whole though it is not what was asked or answered."""
    extractor = Extractor(Options())
    table = Table()
    lies: list[str] = []
    for row, spans, logs in recordings:
        found = extractor.extract(change(spans), logs, complete=True).found
        compare(table, row, found)
        for item in found:
            if set(item.trace_ids) & set(row["trace_ids"]):
                lies.extend(
                    f"{row['convention']}/{row['library']}.{row['case']}: {lie}" for lie in lies_of(row, item)
                )
    return table, lies


def test_names_of_spans_and_scopes_tell_nothing(recordings: list[Recording]) -> None:
    before, _ = run(recordings, list)
    after, _ = run(recordings, rename)
    assert after.cells == before.cells


@pytest.mark.parametrize("limit", [100, 500])
def test_cut_values_are_never_given_out_as_whole(recordings: list[Recording], limit: int) -> None:
    table, lies = run(recordings, cut_values(limit))
    assert lies == []
    assert table.total("absent") == (216, 216)


def test_dropped_attributes_are_never_given_out_as_whole(recordings: list[Recording]) -> None:
    table, lies = run(recordings, drop_attributes(16))
    assert lies == []
    right, wanted = table.total("response")
    assert right / wanted > 0.99


def test_a_lost_root_costs_no_content(recordings: list[Recording]) -> None:
    table, lies = run(recordings, drop_roots)
    assert lies == []
    for name in ("question", "response", "contexts"):
        right, wanted = table.total(name)
        assert right / wanted > 0.99, name

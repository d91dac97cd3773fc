"""The table of metrics is sound, and what is made from it agrees with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from collector.telemetry.instruments import Telemetry
from collector.telemetry.markdown import embed, markdown_table
from collector.telemetry.metrics import table
from collector.telemetry.spec import MetricSpec, Type

README = Path(__file__).parents[3] / "collector" / "telemetry" / "README.md"
SPECS = {spec.name: spec for spec in table()}


@pytest.mark.parametrize("name", SPECS)
def test_each_row_keeps_the_rules_of_exposition(name: str) -> None:
    spec = SPECS[name]
    assert re.fullmatch(r"groundwatch_[a-z0-9_]+", name), "legacy character set"
    assert name.endswith("_total") == (spec.type is Type.COUNTER)
    assert spec.help.endswith("."), "a sentence"
    assert spec.group
    assert bool(spec.buckets) == (spec.type is Type.HISTOGRAM)
    assert list(spec.buckets) == sorted(set(spec.buckets))
    assert not spec.segmented or spec.collected
    for label, values in spec.labels.items():
        assert re.fullmatch(r"[a-z_]+", label)
        assert values is None or (values and len(set(values)) == len(values) <= 40)


def test_names_are_unique() -> None:
    assert len(SPECS) == len(table())


def test_the_readme_shows_the_table() -> None:
    text = README.read_text(encoding="utf-8")
    assert embed(text) == text, "run: python -m collector.telemetry.markdown collector/telemetry/README.md"


def test_markdown_has_a_row_for_each_metric_and_escapes_bars() -> None:
    spec = MetricSpec("groundwatch_x_total", Type.COUNTER, "One | two.", {"a": None}, group="g", segmented=True)
    assert markdown_table([spec]).splitlines()[-1] == (
        "| g | `groundwatch_x_total` | counter | `a` + segments | One \\| two. |"
    )
    assert len(markdown_table().splitlines()) == len(table()) + 2


def test_a_document_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="lacks the lines"):
        embed("# nothing here")


def test_instruments_exist_for_all_but_collected_families_and_known_series_are_born_at_0() -> None:
    telemetry = Telemetry()
    exposed = {family.name: family for family in telemetry.registry.collect()}
    for spec in table():
        family = exposed.get(spec.name.removesuffix("_total") if spec.type is Type.COUNTER else spec.name)
        assert (family is None) == spec.collected, spec.name
        if family is None or spec.type is Type.HISTOGRAM:
            continue
        known = [values for values in spec.labels.values() if values is not None]
        combinations = 1
        for values in known:
            combinations *= len(values)
        expected = combinations if len(known) == len(spec.labels) else 0
        assert [sample.value for sample in family.samples] == [0.0] * expected, spec.name

"""The recorded libraries, field by field, against the thresholds that extraction promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.extract.options import Options
from tests.golden.extract_measure import FIELDS, Table, measure, unpack

PROMISED = 0.99


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("recordings"))


@pytest.fixture(scope="module")
def table(recordings: Path) -> Table:
    return measure(recordings)


@pytest.mark.parametrize("name", FIELDS)
def test_each_field_is_exact(table: Table, name: str) -> None:
    right, wanted = table.total(name)
    assert wanted > 0
    assert right / wanted >= PROMISED, [w for w in table.wrong if w[1] == name]


def test_nothing_is_invented(table: Table) -> None:
    assert [w for w in table.wrong if w[1] == "absent"] == []


@pytest.mark.parametrize(
    "name", ["question", "response", "contexts", "session", "user", "tenant", "usage", "model"]
)
def test_each_library_is_exact(table: Table, name: str) -> None:
    below = {
        library: cells[name]
        for library, cells in table.cells.items()
        if name in cells and cells[name][0] < cells[name][1]
    }
    assert below == {}


def test_joining_finds_the_retrieval_of_another_trace(recordings: Path) -> None:
    joined = measure(recordings, Options(join_traces=True), only="openinference/openai")
    assert joined.wrong == []

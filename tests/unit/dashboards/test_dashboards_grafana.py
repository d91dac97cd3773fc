"""The Grafana dashboards against the published schema (through the classes made from it), and our own rules."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.boards import boards
from dashboards.boards.panels import SCHEMA, Board
from dashboards.build import generated
from dashboards.options import Options

sdk = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="extra [test] is not installed")

BOARDS = boards(Options())
FILES = {path: json.loads(text) for path, text in generated(Options()).items() if path.endswith(".json")}


@pytest.fixture(scope="module", autouse=True)
def published() -> None:
    """Tell the classes about the panels and queries used, so that they read their options too."""
    from grafana_foundation_sdk.cog import runtime
    from grafana_foundation_sdk.cog.plugins import register_default_plugins

    register_default_plugins()
    assert runtime.panelcfg_config("timeseries") is not None


OF_THE_PLUGIN = ("titleFormat", "textFormat", "useValueForTime", "step")
"""Settings of an annotation that belong to Grafana's Prometheus plugin and are in no published schema."""


def lost(given: Any, kept: Any, path: str = "") -> Iterator[str]:
    """Paths of what was given and not kept."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key not in kept:
                yield f"{path}.{key}"
            else:
                yield from lost(value, kept[key], f"{path}.{key}")
    elif isinstance(given, list) and isinstance(kept, list):
        if len(given) != len(kept):
            yield f"{path}[{len(given)} became {len(kept)}]"
        for place, (one, other) in enumerate(zip(given, kept, strict=False)):
            yield from lost(one, other, f"{path}[{place}]")
    elif given != kept:
        yield f"{path}: {given!r} became {kept!r}"


def through_the_schema(board: dict[str, Any]) -> Any:
    from grafana_foundation_sdk.cog.encoder import JSONEncoder

    return json.loads(JSONEncoder().encode(sdk.Dashboard.from_json(board)))


@pytest.mark.parametrize("path", FILES)
def test_every_field_is_known_to_the_published_schema(path: str) -> None:
    unknown = list(lost(FILES[path], through_the_schema(FILES[path])))
    assert [one for one in unknown if one.rpartition(".")[2] not in OF_THE_PLUGIN] == []


def test_that_check_finds_what_is_misspelled() -> None:
    board = json.loads(json.dumps(FILES["grafana/overview.json"]))
    panel = next(panel for panel in board["panels"] if panel["type"] == "timeseries")
    panel["options"]["legend"]["displayMod"] = "list"
    panel["fieldConfig"]["defaults"]["custom"]["lineWith"] = 3
    panel["targets"][0]["expresion"] = "up"
    found = {one.rpartition(".")[2] for one in lost(board, through_the_schema(board))}
    assert found - set(OF_THE_PLUGIN) == {"displayMod", "lineWith", "expresion"}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_every_panel_says_what_it_shows_in_which_unit(board: Board) -> None:
    written = board.written()
    assert written["schemaVersion"] == SCHEMA
    numbers = [panel["id"] for panel in written["panels"]]
    assert numbers == list(range(1, len(numbers) + 1))
    names = {"datasource", *(variable.name for variable in board.variables), "__rate_interval"}
    for panel in written["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["description"].endswith("."), panel["title"]
        assert len(panel["description"]) > 30, panel["title"]
        defaults = panel["fieldConfig"]["defaults"]
        assert defaults["unit"]
        first, *others = defaults["thresholds"]["steps"]
        assert first["value"] is None
        assert [step["value"] for step in others] == sorted(step["value"] for step in others)
        assert panel["datasource"]["uid"] == "${datasource}"
        for target in panel["targets"]:
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= names, target["expr"]
            assert "$job" in target["expr"] or "ALERTS" in target["expr"] or "mean_floor" in target["expr"]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.uid)
def test_panels_do_not_overlap_and_fit(board: Board) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in board.written()["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_dashboards_are_told_apart_and_linked() -> None:
    assert [board.title for board in BOARDS] == [
        "groundwatch: overview",
        "groundwatch: quality",
        "groundwatch: diagnosis",
        "groundwatch: cost and judge",
        "groundwatch: pipeline health",
    ]
    assert len({board["uid"] for board in FILES.values()}) == len(BOARDS)
    for board in FILES.values():
        assert board["links"][0]["tags"] == board["tags"] == ["groundwatch"]


def test_the_first_screen_answers_what_is_asked_at_night() -> None:
    """A screen of 1080 lines shows about 24 units (38 pixels each) below Grafana's own bars."""
    panels = FILES["grafana/overview.json"]["panels"]
    shown = [p["title"] for p in panels if p["gridPos"]["y"] + p["gridPos"]["h"] <= 24]
    for title in (
        "Quality alerts",
        "Quality now",
        "$metric over time",
        "$metric by segment",
        "$metric by release",
        "What went wrong",
    ):
        assert title in shown

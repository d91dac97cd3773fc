"""Panels and dashboards as plain data, in Grafana's schema 41 (Grafana 11.6 and newer)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCHEMA = 41
WIDTH = 24
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, RED, BLUE, GREY = "green", "yellow", "red", "blue", "#8e8e8e"


@dataclass(frozen=True, slots=True)
class Query:
    """One query. `name` is the legend, with {{label}}; `instant` asks for the last value only."""

    expression: str
    name: str = ""
    instant: bool = False
    exemplars: bool = False
    heatmap: bool = False
    style: Mapping[str, Any] = field(default_factory=dict)
    """Settings of how this query's line is drawn, by property id; the name must then hold no label."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `unit` is Grafana's id of it; `steps` are thresholds, (from, colour), the first without a bound.

    `empty` says when the panel may have nothing to show; a panel without it that shows nothing is a fault.
    """

    title: str
    text: str
    queries: Sequence[Query]
    kind: str = "timeseries"
    unit: str = "short"
    width: int = 8
    height: int = 8
    low: float | None = None
    high: float | None = None
    steps: Sequence[tuple[float | None, str]] = ((None, GREEN),)
    stacked: bool = False
    columns: Mapping[str, str] = field(default_factory=dict)
    """Of a table: its columns in order, label or query name to heading."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of a table: units by heading, where they are not `unit`."""
    mapping: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Words and colours for values."""
    empty: str = ""

    @property
    def description(self) -> str:
        return f"{self.text} Empty {self.empty}." if self.empty else self.text


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the head of a dashboard: the values of a label, or a fixed list."""

    name: str
    title: str
    query: str
    many: bool = True
    fixed: bool = False
    first: str = ""


@dataclass(frozen=True, slots=True)
class Board:
    """A dashboard: its rows of panels from top to bottom."""

    uid: str
    title: str
    text: str
    variables: Sequence[Variable]
    rows: Sequence[tuple[str, Sequence[Panel]]]
    marks: Mapping[str, str] = field(default_factory=dict)
    """Annotations by name: queries whose values are times in milliseconds."""

    def written(self) -> dict[str, Any]:
        panels: list[dict[str, Any]] = []
        y = 0
        for title, row in self.rows:
            panels.append(_row(len(panels) + 1, title, y))
            y += 1
            x = height = 0
            for panel in row:
                if x + panel.width > WIDTH:
                    x, y, height = 0, y + height, 0
                panels.append(_panel(len(panels) + 1, panel, x, y))
                x, height = x + panel.width, max(height, panel.height)
            y += height
        return {
            "uid": self.uid,
            "title": self.title,
            "description": self.text,
            "tags": ["groundwatch"],
            "timezone": "browser",
            "editable": False,
            "graphTooltip": 1,
            "time": {"from": "now-24h", "to": "now"},
            "refresh": "1m",
            "schemaVersion": SCHEMA,
            "templating": {"list": [_source_variable(), *(_variable(one) for one in self.variables)]},
            "annotations": {"list": [_marks(name, query) for name, query in self.marks.items()]},
            "links": [
                {
                    "title": "groundwatch",
                    "type": "dashboards",
                    "tags": ["groundwatch"],
                    "asDropdown": False,
                    "includeVars": True,
                    "keepTime": True,
                    "targetBlank": False,
                    "icon": "external link",
                    "tooltip": "",
                    "url": "",
                }
            ],
            "panels": panels,
        }


def _row(number: int, title: str, y: int) -> dict[str, Any]:
    place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
    return {"id": number, "type": "row", "title": title, "collapsed": False, "gridPos": place, "panels": []}


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, Any]:
    options, custom = _DRAWN[panel.kind](panel)
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": value, "color": colour} for value, colour in panel.steps],
        },
        "color": {"mode": "palette-classic" if panel.kind in ("timeseries", "heatmap") else "thresholds"},
        "custom": custom,
        "noValue": "nothing yet",
    }
    if panel.low is not None:
        defaults["min"] = panel.low
    if panel.high is not None:
        defaults["max"] = panel.high
    if panel.mapping:
        words = {value: {"text": text, "color": colour} for value, (text, colour) in panel.mapping.items()}
        defaults["mappings"] = [{"type": "value", "options": words}]
    written: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "datasource": _SOURCE,
        "targets": [_target(place, query, panel) for place, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": defaults, "overrides": _overrides(panel)},
        "options": options,
    }
    if panel.kind == "table":
        written["transformations"] = _table(panel)
    return written


def _target(place: int, query: Query, panel: Panel) -> dict[str, Any]:
    form = "table" if panel.kind == "table" else "heatmap" if query.heatmap else "time_series"
    return {
        "refId": chr(ord("A") + place),
        "datasource": _SOURCE,
        "editorMode": "code",
        "expr": query.expression,
        "legendFormat": query.name or "__auto",
        "format": form,
        "instant": query.instant,
        "range": not query.instant,
        "exemplar": query.exemplars,
    }


def _overrides(panel: Panel) -> list[dict[str, Any]]:
    overrides = [
        {
            "matcher": {"id": "byName", "options": query.name},
            "properties": [{"id": key, "value": value} for key, value in query.style.items()],
        }
        for query in panel.queries
        if query.style
    ]
    return overrides + [
        {"matcher": {"id": "byName", "options": heading}, "properties": [{"id": "unit", "value": unit}]}
        for heading, unit in panel.units.items()
    ]


def _table(panel: Panel) -> list[dict[str, Any]]:
    """Join the queries by their labels, and keep the columns that are named, in that order."""
    values = {f"Value #{chr(ord('A') + place)}": query.name for place, query in enumerate(panel.queries)}
    if len(panel.queries) == 1:
        values = {"Value": panel.queries[0].name}
    headings = {**panel.columns, **values}
    order = {name: place for place, name in enumerate(headings)}
    return [
        # Before they are joined: the recorded name differs from query to query and would keep rows apart.
        {"id": "filterFieldsByName", "options": {"include": {"names": list(headings)}}},
        {"id": "merge", "options": {}},
        {"id": "organize", "options": {"renameByName": headings, "indexByName": order, "excludeByName": {}}},
    ]


_Drawn = tuple[dict[str, Any], dict[str, Any]]


def _timeseries(panel: Panel) -> _Drawn:
    options = {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
        "tooltip": {"mode": "multi", "sort": "desc"},
    }
    custom = {
        "drawStyle": "line",
        "lineWidth": 1 if panel.stacked else 2,
        "fillOpacity": 60 if panel.stacked else 0,
        "showPoints": "never",
        "spanNulls": 300_000,  # milliseconds; a longer gap is a gap
        "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"},
        "thresholdsStyle": {"mode": "line" if len(panel.steps) > 1 else "off"},
    }
    return options, custom


def _stat(panel: Panel) -> _Drawn:
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "colorMode": "background" if len(panel.steps) > 1 or panel.mapping else "value",
        "graphMode": "none",
        "justifyMode": "auto",
        "orientation": "auto",
        "textMode": "value_and_name" if len(panel.queries) > 1 or "{{" in panel.queries[0].name else "auto",
        "wideLayout": True,
    }, {}


def _bargauge(panel: Panel) -> _Drawn:
    return {
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "displayMode": "gradient",
        "orientation": "horizontal",
        "showUnfilled": True,
        "valueMode": "color",
        "minVizHeight": 16,
        "minVizWidth": 8,
    }, {}


def _table_options(panel: Panel) -> _Drawn:
    sort = [{"displayName": panel.queries[0].name, "desc": False}]
    return {"showHeader": True, "cellHeight": "sm", "sortBy": sort}, {"align": "auto", "inspect": False}


def _heatmap(panel: Panel) -> _Drawn:
    return {
        "calculate": False,
        "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "dark-orange"},
        "cellGap": 1,
        "yAxis": {"axisPlacement": "left", "unit": "short"},
        "legend": {"show": True},
        "tooltip": {"mode": "single", "yHistogram": False, "showColorScale": False},
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "showValue": "never",
        "rowsFrame": {"layout": "auto"},
        "filterValues": {"le": 1e-9},
    }, {}


_DRAWN = {
    "timeseries": _timeseries,
    "stat": _stat,
    "bargauge": _bargauge,
    "table": _table_options,
    "heatmap": _heatmap,
}


def _source_variable() -> dict[str, Any]:
    return {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0}


def _variable(one: Variable) -> dict[str, Any]:
    if one.fixed:
        values = one.query.split(",")
        options = [{"text": value, "value": value, "selected": value == values[0]} for value in values]
        current = {"text": values[0], "value": values[0]}
        fixed = {"type": "custom", "query": one.query, "options": options, "current": current}
        return {"name": one.name, "label": one.title, "multi": False, "includeAll": False, "hide": 0, **fixed}
    written = {
        "name": one.name,
        "label": one.title,
        "type": "query",
        "datasource": _SOURCE,
        "query": {"query": one.query, "refId": "A"},
        "refresh": 2,
        "sort": 1,
        "multi": one.many,
        "includeAll": one.many,
        "hide": 0,
    }
    if one.many:
        return {**written, "allValue": ".+", "current": {"text": ["All"], "value": ["$__all"]}}
    return {**written, "current": {"text": one.first, "value": one.first}}


def _marks(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "datasource": _SOURCE,
        "enable": True,
        "iconColor": "purple",
        "expr": query,
        "titleFormat": name,
        "textFormat": "{{service}}{{metric}} {{value}}",
        "useValueForTime": True,
        "step": "60s",
    }

"""The Grafana dashboards, one file each; `panels.py` says how a panel is written."""

from __future__ import annotations

from dashboards.boards.cost import cost
from dashboards.boards.diagnosis import diagnosis
from dashboards.boards.overview import overview
from dashboards.boards.panels import Board
from dashboards.boards.pipeline import pipeline
from dashboards.boards.quality import quality
from dashboards.options import Options


def boards(options: Options) -> list[Board]:
    """Every dashboard, in the order in which one reads them."""
    return [make(options) for make in (overview, quality, diagnosis, cost, pipeline)]

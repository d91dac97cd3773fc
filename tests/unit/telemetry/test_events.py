"""An event logs and counts together; lines are one line, bounded, and free of what exceptions say."""

from __future__ import annotations

import io
import json
import logging

import pytest

from collector.pipeline.clock import ManualClock
from collector.telemetry import metrics
from collector.telemetry.events import Count, Event, Events, JsonFormatter, Level, TextFormatter
from collector.telemetry.instruments import Telemetry


class Log:
    def __init__(self, formatter: logging.Formatter) -> None:
        self.stream = io.StringIO()
        self.logger = logging.Logger("test.events", logging.INFO)
        handler = logging.StreamHandler(self.stream)
        handler.setFormatter(formatter)
        self.logger.addHandler(handler)
        self.telemetry = Telemetry()
        self.clock = ManualClock()
        self.events = Events(self.telemetry, self.clock, self.logger, burst=2, period_seconds=60)

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def sample(self, name: str, **labels: str) -> float:
        return float(self.telemetry.registry.get_sample_value(name, labels) or 0)


@pytest.fixture
def json_log() -> Log:
    return Log(JsonFormatter())


ABANDONED = Event(
    "judge_slot_abandoned",
    Level.ERROR,
    "a judge call does not end",
    {"held_seconds": 130.5},
    Count(metrics.JUDGING_ABANDONED),
)


def test_line_and_counter_move_together(json_log: Log) -> None:
    json_log.events.tell(ABANDONED)
    (line,) = map(json.loads, json_log.lines)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "error",
        "event": "judge_slot_abandoned",
        "message": "a judge call does not end",
        "held_seconds": 130.5,
    }
    assert json_log.sample(metrics.JUDGING_ABANDONED.name) == 1
    assert json_log.sample(metrics.LOG_LINES.name, level="error", written="yes") == 1


def test_repeats_are_suppressed_and_counted_and_said_later(json_log: Log) -> None:
    for _ in range(10):
        json_log.events.tell(ABANDONED)
    assert len(json_log.lines) == 2
    assert json_log.sample(metrics.JUDGING_ABANDONED.name) == 10
    assert json_log.sample(metrics.LOG_LINES.name, level="error", written="suppressed") == 8
    json_log.events.tell(Event("another", Level.INFO, "something else"))
    assert len(json_log.lines) == 3
    json_log.clock.advance(61)
    json_log.events.tell(ABANDONED)
    assert json.loads(json_log.lines[-1])["suppressed"] == 8


def test_below_the_log_level_it_still_counts(json_log: Log) -> None:
    json_log.events.tell(Event("detail", Level.DEBUG, "a detail", count=Count(metrics.JUDGING_RETRIED)))
    assert json_log.lines == []
    assert json_log.sample(metrics.JUDGING_RETRIED.name) == 1


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_of_an_error_the_type_and_the_place_are_logged_not_its_message(formatter: logging.Formatter) -> None:
    log = Log(formatter)
    try:
        int("the user's secret question")
    except ValueError as error:
        log.events.tell(Event("judge_error", Level.ERROR, "judging raised"), error)
        log.logger.error("a library's way", exc_info=True)
    text = log.stream.getvalue()
    assert "secret" not in text
    assert text.count("ValueError") == 2
    assert "test_of_an_error" in text


@pytest.mark.parametrize("formatter", [JsonFormatter(), TextFormatter()])
def test_a_value_can_not_forge_a_line_or_fill_the_disk(formatter: logging.Formatter) -> None:
    log = Log(formatter)
    forged = 'x\n2026-01-01 error forged: "all is well"\u2028\x1b[2J'
    log.events.tell(Event("odd", Level.INFO, "odd id", {"interaction_id": forged, "long": "y" * 10_000}))
    log.logger.warning("message\nforged")
    assert log.stream.getvalue().count("\n") == 2
    assert "\x1b" not in log.stream.getvalue()
    assert len(log.lines[0]) < 1_000


def test_text_lines_are_for_people() -> None:
    log = Log(TextFormatter())
    log.events.tell(ABANDONED)
    _, _, rest = log.lines[0].partition(" ")
    assert rest == "error judge_slot_abandoned: a judge call does not end held_seconds=130.5"

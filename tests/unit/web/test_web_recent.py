"""What the status page says of telemetry that lacks something."""

from __future__ import annotations

from dataclasses import replace

from collector.extract.explain import content_switches
from collector.extract.options import Options
from collector.pipeline.clock import ManualClock
from collector.records.found import Mark
from collector.records.settled import Settled
from collector.web.recent import Recent
from collector.web.status import Gap
from tests.support.review_settled import a_settled


def _lacking(convention: str, *marks: Mark) -> Settled:
    settled = a_settled()
    return replace(settled, found=replace(settled.found, convention=convention, marks=frozenset(marks)))


def _recent() -> Recent:
    return Recent(ManualClock(), frozenset(), content_switches(Options()))


def test_content_that_is_off_is_named_once_with_the_switch_of_that_library() -> None:
    recent = _recent()
    recent.settle(_lacking("otel_genai", Mark.HIDDEN, Mark.NO_QUESTION, Mark.NO_RESPONSE))
    recent.settle(_lacking("openllmetry", Mark.HIDDEN))
    assert {gap.missing for gap in recent.gaps()} == {"content"}
    first, second = sorted(gap.cure for gap in recent.gaps())
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in first + second
    assert "TRACELOOP_TRACE_CONTENT=true" in first + second


def test_what_has_to_be_mapped_is_told_by_settings_that_there_are() -> None:
    recent = _recent()
    recent.settle(_lacking("generic", Mark.NO_QUESTION, Mark.NO_RESPONSE))
    cures = [gap.cure for gap in recent.gaps()]
    named = {
        word.rstrip(".").split(".")[1] for cure in cures for word in cure.split() if word.startswith("extract.")
    }
    assert named == {"question_keys", "response_keys"}
    assert named <= set(Options.model_fields)
    assert all(isinstance(gap, Gap) and gap.interactions == 1 for gap in recent.gaps())

"""Filters, patterns and segments."""

from __future__ import annotations

import time

import pytest
from pydantic import ValidationError

from collector.records.decision import Fate
from collector.records.found import Found, Mark
from collector.sampling.matching import Match
from collector.sampling.options import Options, Segment
from collector.sampling.patterns import check_regex, matcher
from collector.sampling.segments import Segments
from collector.telemetry import metrics
from tests.unit.sampling.sampling_builders import Bench, found


@pytest.mark.parametrize(
    "place",
    [
        {"resource": {"deployment.environment.name": "test"}},
        {"resource": {"deployment.environment": "CI"}},
        {"attributes": {"deployment.environment": "testing"}},
        {"attributes": {"langfuse.environment": "sdk-experiment"}},
        {"attributes": {"langfuse.environment": "langfuse-llm-as-a-judge"}},
        {"attributes": {"langfuse.experiment.id": "7"}},
        {"attributes": {"langsmith.reference_example_id": "example-7"}},
        {"resource": {"openinference.project.name": "Experiment-5f2a"}},
        {"attributes": {"mlflow.traceTag.eval.requestId": '"r"'}},
    ],
)
def test_test_traffic_is_left_out_by_default(place: dict[str, dict[str, object]]) -> None:
    interaction = found(resource=place.get("resource"), attributes=place.get("attributes"))
    bench = Bench(rate=1)
    assert bench.sampler.decide(interaction).fate is Fate.FILTERED
    assert bench.value(metrics.FILTERED.name, reason="test_traffic") == 1
    let_in = Bench(rate=1, test_traffic=[])
    assert let_in.sampler.decide(interaction).fate is Fate.QUEUED


@pytest.mark.parametrize("name", ["production", "prod", "contest", "staging", ""])
def test_other_environments_are_not(name: str) -> None:
    bench = Bench(rate=1)
    decision = bench.sampler.decide(found(resource={"deployment.environment.name": name}))
    assert decision.fate is Fate.QUEUED


@pytest.mark.parametrize(("mark", "reason"), [(Mark.NOT_RAG, "not_rag"), (Mark.OWN_EVALUATION, "own_evaluation")])
def test_marks_that_leave_out(mark: Mark, reason: str) -> None:
    bench = Bench(rate=1)
    decision = bench.sampler.decide(found(marks=frozenset((mark,))))
    assert (decision.fate, decision.policy) == (Fate.FILTERED, reason)


def test_include_and_exclude() -> None:
    bench = Bench(
        rate=1,
        include=[{"attribute": "tenant", "equals": ["a", "b"]}],
        exclude=[{"attribute": "http.route", "glob": "/internal/*"}, {"attribute": "debug", "equals": True}],
    )

    def fate(**attributes: object) -> str:
        decision = bench.sampler.decide(found(attributes={**attributes}))
        return decision.policy if decision.fate is Fate.FILTERED else decision.fate.value

    assert fate(tenant="a") == "queued"
    assert fate(tenant="c") == "not_included"
    assert fate() == "not_included"
    assert fate(tenant="a", debug=True) == "excluded"
    assert fate(tenant="a", debug="true") == "excluded"
    assert fate(tenant="a", debug=False) == "queued"
    assert (
        bench.sampler.decide(found(attributes={"tenant": "a", "http.route": "/internal/x"})).policy == "excluded"
    )
    assert fate(tenant=["z", "b"]) == "queued"


def test_matching() -> None:
    assert matcher(equals=(1, "x"))("1")
    assert not matcher(equals=("Test",))("test")
    assert matcher(equals=("Test",), ignore_case=True)("tEST")
    assert matcher(globs=("v?.[0-9]*",))("v1.2-rc")
    assert matcher(regexes=(r"team-(?:\d{1,3})",))("team-42")
    assert not matcher(regexes=("team",))("team-42")
    assert matcher()(None)
    assert not matcher(equals=("a",))(["b"] * 64 + ["a"])  # a list is looked at so far and no further


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+b",
        "(a|b)*",
        "((a*)b)*",
        "(?:a?){5}",
        r"(a)\1",
        "(?=a)b",
        "(?<!a)b",
        "(?P<x>a)",
        "a*b*c*",
        "[^y]{0,255}[^y]{0,255}[^y]{0,255}[zx]",
        "a*b{1,99}c{3,}",
        "a?" * 30 + "a" * 30,
        "a{0,9}b{0,9}c{0,9}d{0,9}",
        "[a-",
        "(?i)a",
    ],
)
def test_patterns_that_could_blow_up_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="regex"):
        check_regex(pattern)
    with pytest.raises(ValidationError, match="regex"):
        Match(attribute="x", regex=(pattern,))


@pytest.mark.parametrize(
    "pattern",
    [
        "a+b*",
        r"\d+\.\d+",
        "(?:ab){2}",
        "(ab)+",
        "[]x(+]+",
        r"[^\]]*",
        "a|b|c",
        "(a|b)c",
        r"\(a+\)",
        "a{2,5}",
        r"https?://[a-z]{2,3}\.example(?:\.com)?/.*",
        "a{64}b{64}c{64}",
        "x{y",
        "(a+)b",
    ],
)
def test_patterns_that_can_not_are_taken(pattern: str) -> None:
    check_regex(pattern)


def test_the_worst_pattern_is_quick_on_the_worst_value() -> None:
    fits = matcher(regexes=(r"(?:a)+.*b",), globs=("*a*a*a*a*a*b",))
    before = time.process_time()
    assert not fits("a" * 1_000_000)
    assert time.process_time() - before < 5  # it takes milliseconds; without bounds it would not end


def service(name: str, **attributes: object) -> Found:
    return found(service=name, attributes={**attributes})


def test_segments_listed_matched_and_other() -> None:
    segments = Segments(
        (
            Segment(name="service", attribute="service", glob=("*",), max_values=2),
            Segment(name="tenant", attribute="tenant.id", values=("a",), glob=("b-*",), max_values=3),
        )
    )
    assert segments.names == ("service", "tenant")

    def of(interaction: Found) -> dict[str, str]:
        return dict(segments.of(interaction))

    assert of(service("shop", **{"tenant.id": "a"})) == {"service": "shop", "tenant": "a"}
    assert of(service("chat", **{"tenant.id": "b-1"})) == {"service": "chat", "tenant": "b-1"}
    assert of(service("third", **{"tenant.id": "c"})) == {"service": "other", "tenant": "other"}
    assert of(service("shop", **{"tenant.id": "b-2"})) == {"service": "shop", "tenant": "b-2"}
    assert of(service("", **{"tenant.id": "b-3"})) == {"service": "unset", "tenant": "other"}
    assert of(service("shop")) == {"service": "shop", "tenant": "unset"}


def test_listed_values_are_known_in_every_combination() -> None:
    service = Segment(name="service", attribute="service", values=("b", "a"))
    tenant = Segment(name="tenant", attribute="tenant.id", values=("x", "y"), glob=("z*",))
    assert [dict(one) for one in Segments((service, tenant)).listed()] == [
        {"service": name, "tenant": other} for name in ("b", "a") for other in ("x", "y")
    ]
    matched = Segment(name="region", attribute="region", glob=("*",))
    assert list(Segments((service, matched)).listed()) == []  # what will be matched is not known


@pytest.mark.parametrize("name", ["x" * 65, "line\nbreak", "other", "unset", "\x00"])
def test_hostile_values_are_other(name: str) -> None:
    segments = Segments(Options().segments)
    assert dict(segments.of(service(name)))["service"] in ("other", "unset")
    assert dict(segments.of(service("fine")))["service"] == "fine"


def test_at_most_20_values() -> None:
    segments = Segments(Options().segments)
    values = {dict(segments.of(service(f"service-{number}")))["service"] for number in range(1000)}
    assert len(values) == 21


@pytest.mark.parametrize(
    "segments",
    [
        [{"name": "a", "attribute": "x"}],
        [{"name": "a", "attribute": "x", "values": [str(n) for n in range(21)]}],
        [{"name": "a", "attribute": "x", "values": "y"}, {"name": "a", "attribute": "z", "values": "y"}],
        [{"name": "No", "attribute": "x", "values": "y"}],
    ],
)
def test_segments_that_make_no_sense(segments: list[dict[str, object]]) -> None:
    with pytest.raises(ValidationError):
        Options.model_validate({"segments": segments})

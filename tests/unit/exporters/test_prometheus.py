"""/metrics, read by the real parsers."""

from __future__ import annotations

import asyncio
import gzip
import re
import subprocess
from collections.abc import Callable

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from collector.exporters.exemplars import ScoreExemplars
from collector.exporters.prometheus import Format, PrometheusExporter, negotiate
from collector.records.decision import Decision, Fate
from collector.records.found import Found
from collector.records.settled import Settled
from collector.telemetry import metrics
from collector.telemetry.instruments import Telemetry
from collector.telemetry.process import describe_process
from collector.telemetry.spec import Family
from scorers.interaction import Interaction
from scorers.outcome import Result, Score
from scorers.scorer import Kind

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
OPENMETRICS = "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"


class Sums:
    """A source with one counter, one distribution, and label values that need escaping."""

    def families(self) -> list[Family]:
        return [
            Family(metrics.JUDGED_SUMS[0], ("metric", "service"), [(("faithfulness", 'a"b\\c\nd'), 12.5)]),
            Family(
                metrics.SCORE_WEIGHT,
                ("metric", "le", "service"),
                [(("faithfulness", "0.5", "x"), 1.0), (("faithfulness", "+Inf", "x"), 3.0)],
            ),
            Family(metrics.CONDITIONAL, (), [((), 1e21)]),
        ]


@pytest.fixture
def exporter() -> PrometheusExporter:
    telemetry = Telemetry()
    describe_process(telemetry, version="0.1.0", unclean_shutdown=True)
    exemplars = ScoreExemplars(telemetry, ["faithfulness"])
    scored = Result("i", "faithfulness", Kind.JUDGED, Score(0.55), "1", "f")
    exemplars.settle(
        Settled(Found(Interaction("i"), trace_ids=(TRACE_ID,)), Decision(Fate.QUEUED, 0.1, "rate"), (), (scored,))
    )
    return PrometheusExporter(telemetry.registry, [Sums()])


@pytest.mark.parametrize("fmt", Format)
def test_both_formats_parse_to_the_same_samples(exporter: PrometheusExporter, fmt: Format) -> None:
    parse = parse_openmetrics if fmt is Format.OPENMETRICS else parse_text
    samples = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parse(exporter.text(fmt).decode())
        for sample in family.samples
    }
    assert (
        samples["groundwatch_judged_sum_w_total", (("metric", "faithfulness"), ("service", 'a"b\\c\nd'))] == 12.5
    )
    le = (("le", "+Inf"), ("metric", "faithfulness"), ("service", "x"))
    assert samples["groundwatch_score_weight_total", le] == 3
    assert samples["groundwatch_conditional_interactions_total", ()] == 1e21
    assert samples["groundwatch_unclean_shutdown", ()] == 1
    assert samples["groundwatch_resident_memory_bytes", ()] > 1_000_000
    assert samples["groundwatch_items_received_total", (("signal", "traces"),)] == 0


def test_every_counter_is_a_counter_in_openmetrics(exporter: PrometheusExporter) -> None:
    types = {family.name: family.type for family in parse_openmetrics(exporter.text(Format.OPENMETRICS).decode())}
    assert types["groundwatch_score_weight"] == "counter"
    assert types["groundwatch_judged_sum_w"] == "counter"
    assert types["groundwatch_judged_score"] == "histogram"


def test_exemplars_carry_the_trace_and_only_in_openmetrics(exporter: PrometheusExporter) -> None:
    exemplars = [
        sample.exemplar.labels
        for family in parse_openmetrics(exporter.text(Format.OPENMETRICS).decode())
        for sample in family.samples
        if sample.exemplar
    ]
    assert exemplars == [{"trace_id": TRACE_ID}]
    assert TRACE_ID not in exporter.text(Format.TEXT).decode()


def test_promtool_finds_nothing_to_complain_of(
    exporter: PrometheusExporter, program: Callable[[str], str]
) -> None:
    promtool = program("promtool")
    done = subprocess.run(
        [promtool, "check", "metrics"],
        input=exporter.text(Format.TEXT),
        capture_output=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr.decode(), done.stdout.decode()) == (0, "", "")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/html", Format.TEXT),
        (OPENMETRICS, Format.OPENMETRICS),
        ("application/openmetrics-text; version=1.0.0, text/plain", Format.OPENMETRICS),
        ("text/plain;q=0.9, application/openmetrics-text;q=0.1", Format.TEXT),
        ("application/openmetrics-text;q=0", Format.TEXT),
        ("application/openmetrics-text;q=junk, text/plain;q=0.1", Format.TEXT),
        ("APPLICATION/OpenMetrics-Text;Q=0.7", Format.OPENMETRICS),
    ],
)
def test_accept_is_negotiated(accept: str, expected: Format) -> None:
    assert negotiate(accept) is expected


@pytest.mark.parametrize(("encoding", "zipped"), [("gzip, deflate", True), ("gzip;q=0", False), ("", False)])
async def test_gzip_when_asked(exporter: PrometheusExporter, encoding: str, zipped: bool) -> None:
    body, headers = await exporter.render(OPENMETRICS, encoding)
    assert ("content-encoding" in headers) is zipped
    plain = gzip.decompress(body) if zipped else body
    assert plain.endswith(b"# EOF\n")
    assert plain.count(b"# EOF") == 1
    assert headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert "Accept" in headers["vary"]


async def test_gauges_are_refreshed_before_each_scrape_and_scrapes_take_turns() -> None:
    telemetry = Telemetry()
    calls: list[int] = []
    exporter = PrometheusExporter(telemetry.registry, before=lambda: calls.append(1))
    bodies = await asyncio.gather(*(exporter.render("") for _ in range(5)))
    assert len(calls) == 5
    assert all(body for body, _ in bodies)


def test_a_trace_id_that_is_none_leaves_no_exemplar() -> None:
    telemetry = Telemetry()
    exemplars = ScoreExemplars(telemetry, [])
    scored = Result("i", "faithfulness", Kind.JUDGED, Score(0.55), "1", "f")
    for ids in ((), ("x" * 500,)):
        exemplars.settle(
            Settled(Found(Interaction("i"), trace_ids=ids), Decision(Fate.QUEUED, 0.1, "rate"), (), (scored,))
        )
    text = PrometheusExporter(telemetry.registry).text(Format.OPENMETRICS).decode()
    assert 'groundwatch_judged_score_count{metric="faithfulness"} 2.0' in text
    assert "xxx" not in text


class Growing:
    """A source whose one counter is 1 more at each look."""

    def __init__(self) -> None:
        self.looks = 0

    def families(self) -> list[Family]:
        return self.freeze()()

    def freeze(self) -> Callable[[], list[Family]]:
        self.looks += 1
        value = float(self.looks)
        return lambda: [Family(metrics.CONDITIONAL, (), [((), value)])]


async def test_what_is_shown_is_of_the_last_moment_that_was_written() -> None:
    answers = [False, True, False, True]
    commits: list[bool] = []

    async def commit(also: Callable[[], None]) -> bool:
        also()
        commits.append(answers[len(commits)])
        return commits[-1]

    exporter = PrometheusExporter(Telemetry().registry, [Growing()], commit=commit)
    shown = []
    for _ in answers:
        body, _ = await exporter.render("text/plain")
        found = re.search(rf"^{metrics.CONDITIONAL.name} (\S+)$", body.decode(), re.MULTILINE)
        shown.append(found[1] if found else None)
    assert shown == [None, "2.0", "2.0", "4.0"]

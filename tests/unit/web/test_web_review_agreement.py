"""The page of agreement: the same figures as the command's, split by segments, inert, and made once in a while."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from collector.pipeline.clock import ManualClock
from collector.review.agreement import Builder
from collector.review.case import Case
from collector.review.labels import Draft
from collector.review.query import Query
from collector.review.sqlite import SqliteStore
from collector.review.standing import KEPT_SECONDS, Gauges, Standing
from collector.telemetry.instruments import Telemetry
from tests.support.review_pages import hostile, opened, site
from tests.unit.review.agreement_simulator import METRIC, World, cases


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with opened(tmp_path / "review.sqlite") as made:
        yield made


def client(store: SqliteStore, made: list[Case]) -> httpx.AsyncClient:
    app, _ = site(made, store=store)
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")


def reviewed(store: SqliteStore, *, labels: int = 70) -> list[Case]:
    """Cases in the store with their labels given there."""
    made = list(cases(np.random.default_rng(3), World(), answers=400, kept=0.4, labels=labels))
    for case in made:
        store.put(case)
    store.flush()
    for case in made:
        for one in case.labels:
            draft = Draft(one.kind, one.value, one.metric)
            store.label(case.id, [draft], author="anna", expected_revision=0, in_order=one.in_order)
    return made


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", html))


async def test_the_page_shows_quality_figures_and_curves(store: SqliteStore) -> None:
    made = reviewed(store)
    builder = Builder()
    for case in store.each(Query()):
        builder.add(case)
    quality = builder.report().corrected[0]
    assert quality.mean is not None
    async with client(store, made) as http:
        page = await http.get("/review/agreement")
        assert page.status_code == 200
        assert "style-src 'self'" in page.headers["content-security-policy"]
        text = text_of(page.text)
        assert f"mean{quality.mean.value:.3f}({quality.mean.low:.3f} to {quality.mean.high:.3f})" in text
        assert f"{quality.first_mean:.3f}" in text
        assert "judged against people" in text
        assert "picked cases, without weights" in text
        assert page.text.count("<svg") == 2
        assert " style=" not in page.text
        by_judge = await http.get("/review/agreement", params={"by": "judge"})
        assert f"{METRIC}, not known" in text_of(by_judge.text)
        wrong = await http.get("/review/agreement", params={"by": "<script>"})
        assert wrong.status_code == 400
        assert "<script>alert" not in wrong.text
        assert (await http.get("/review")).text.count('href="/review/agreement"') == 1


async def test_hostile_names_are_inert_and_an_empty_store_says_so(store: SqliteStore) -> None:
    async with client(store, []) as http:
        assert "Nothing to compare yet" in (await http.get("/review/agreement")).text
    evil = '"><img src=x onerror=alert(1)>'
    async with client(store, [hostile(evil)]) as http:
        for by in ("service", "cause", evil):
            page = await http.get("/review/agreement", params={"by": by})
            assert "<img" not in page.text


def test_a_report_is_kept_for_a_while(store: SqliteStore) -> None:
    clock = ManualClock()
    standing = Standing(store, clock, max_cases=100)
    assert standing.report().agreement.cases == 0
    made = reviewed(store)
    assert standing.report().agreement.cases == 0
    clock.advance(KEPT_SECONDS)
    report = standing.report()
    assert (report.agreement.cases, report.cut) == (100, len(made) > 100)
    assert report.made_unix == clock.unix_nano() / 1e9


def test_gauges_tell_the_corrected_mean_and_nothing_when_its_labels_are_gone(store: SqliteStore) -> None:
    clock, telemetry = ManualClock(), Telemetry()
    gauges = Gauges(store, clock, telemetry)

    def shown(name: str) -> float | None:
        return telemetry.registry.get_sample_value(f"groundwatch_corrected_{name}", {"metric": METRIC})

    gauges.renew()
    assert shown("mean") is None
    made = reviewed(store)
    gauges.renew()
    quality = Standing(store, clock).report().agreement.corrected[0]
    assert quality.mean is not None
    assert shown("mean") == quality.mean.value
    assert (shown("mean_lower"), shown("mean_upper")) == (quality.mean.low, quality.mean.high)
    assert (shown("uncorrected_mean"), shown("labels")) == (quality.first_mean, quality.labels)
    for case in made[:80]:
        store.undo(case.id, author="anna", expected_revision=None) if case.labels else None
    gauges.renew()
    assert np.isnan(shown("mean"))
    assert shown("labels") == 0

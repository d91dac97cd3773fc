"""The review's JSON API, and its document exercised by a generator of requests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from collector.review.case import Reason
from collector.review.sqlite import SqliteStore
from collector.web.app import Site
from collector.web.review.models import CaseAnswer
from tests.support.review_pages import opened, queue_of, site, warranty

CASE = "case-0000000000000001"
BEARER = {"authorization": "Bearer sesame"}


class Feedback:
    """Takes feedback about one case, as the review's own does."""

    def __init__(self) -> None:
        self.taken: list[dict[str, object]] = []

    async def take(self, **given: object) -> str:
        if given["case_id"] != CASE:
            return "unknown"
        self.taken.append(given)
        return "attached"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with opened(tmp_path / "review.sqlite") as made:
        yield made


@pytest.fixture
def feedback() -> Feedback:
    return Feedback()


@pytest.fixture
def app(store: SqliteStore, feedback: Feedback) -> Site:
    cases = [*queue_of(4), *(warranty(n, reason=Reason.LOW_SCORE, low=n / 100) for n in range(20, 30))]
    made, _ = site(cases, store=store, token=lambda: "sesame", feedback=feedback)
    return made


@pytest.fixture
def http(app: Site) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app=app)
    return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=BEARER)


async def test_cases_are_listed_searched_and_paged(http: httpx.AsyncClient) -> None:
    async with http:
        listed = (await http.get("/api/v1/review/cases", params={"sort": "oldest", "limit": 10})).json()
        assert [one["id"] for one in listed["cases"]][:2] == [CASE, "case-0000000000000002"]
        rest = await http.get(
            "/api/v1/review/cases", params={"sort": "oldest", "limit": 10, "after": listed["next"]}
        )
        assert len(rest.json()["cases"]) == 4
        low = {"metric": "faithfulness", "score_max": "0.25", "reason": "low_score", "segment": "tenant=acme"}
        found = (await http.get("/api/v1/review/cases", params=low)).json()["cases"]
        assert {one["id"] for one in found} == {
            "case-0000000000000015",
            "case-0000000000000017",
            "case-0000000000000019",
        }
        assert {"metric": "faithfulness", "kind": "judged", "score": 0.21} in found[-1]["scores"]
        words = await http.get(
            "/api/v1/review/cases", params={"text": '"number 3"', "since": "2023-11-14", "until": "2e9"}
        )
        assert [one["id"] for one in words.json()["cases"]] == ["case-0000000000000003"]
        facets = (await http.get("/api/v1/review/facets")).json()
        assert facets["services"] == [{"value": "shop", "cases": 14}]
        assert (await http.get("/api/v1/review/stats")).json()["cases"] == 14


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("limit=0", "limit"),
        ("limit=1000", "limit"),
        ("sort=best", "sort"),
        ("score_min=0.5", "metric"),
        ("kind=judged", "metric"),
        ("metric=a&score_min=nan", "score_min"),
        ("since=yesterday", "since"),
        ("since=inf", "since"),
        ("segment=acme", "segment"),
        ("colour=red", "colour"),
        ("service=a&service=b", "service"),
        ("labelled=perhaps", "labelled"),
        ("after=x", "continue"),
        ("text=" + "x" * 501, "text"),
    ],
)
async def test_a_wrong_parameter_is_named_with_the_cure(http: httpx.AsyncClient, query: str, named: str) -> None:
    async with http:
        reply = await http.get(f"/api/v1/review/cases?{query}")
    assert reply.status_code == 422
    assert reply.headers["content-type"] == "application/problem+json"
    assert named in reply.json()["detail"]
    assert reply.json()["cure"]


async def test_a_case_is_labelled_undone_and_erased(http: httpx.AsyncClient, store: SqliteStore) -> None:
    async with http:
        labels = [
            {"kind": "agree", "value": "disagree", "metric": "faithfulness"},
            {"kind": "claim", "value": "contradicted", "metric": "faithfulness", "target": 1},
            {"kind": "passage", "value": "irrelevant", "target": 2},
            {"kind": "score", "value": 0, "metric": "faithfulness"},
            {"kind": "golden", "value": True},
        ]
        sent = {"id": CASE, "labels": labels, "author": "ana", "expected_revision": 0}
        made = await http.post("/api/v1/review/labels", json=sent)
        assert made.status_code == 200
        assert made.json()["revision"] == 1
        assert made.json()["golden"] is True
        again = await http.post("/api/v1/review/labels", json=sent)
        assert (again.status_code, again.json()["case_revision"]) == (409, 1)
        bad = {
            **sent,
            "labels": [{"kind": "agree", "value": "perhaps", "metric": "faithfulness"}],
            "expected_revision": 1,
        }
        assert "agree" in (await http.post("/api/v1/review/labels", json=bad)).json()["detail"]
        nameless = {**sent, "author": None, "expected_revision": 1}
        assert (await http.post("/api/v1/review/labels", json=nameless)).status_code == 422
        undone = await http.post("/api/v1/review/undo", json={"id": CASE, "author": "ana", "expected_revision": 1})
        assert undone.json()["in_effect"] == []
        assert len(undone.json()["labels"]) == 6
        nothing = await http.post("/api/v1/review/undo", json={"id": CASE, "author": "ana"})
        assert nothing.status_code == 409
        erased = await http.post(
            "/api/v1/review/erase", json={"kind": "session", "id": "other", "also": ["session_1a2b"]}
        )
        assert erased.status_code == 200
        assert len(erased.json()["case_ids"]) == 14
        assert erased.json()["labels"] == 6
        assert (await http.get("/api/v1/review/case", params={"id": CASE})).status_code == 404
        missing = await http.post("/api/v1/review/labels", json={**sent, "expected_revision": None})
        assert missing.status_code == 404
    assert store.stats().cases == 0


@pytest.mark.parametrize(
    ("content", "status"),
    [(b"{", 422), (b"[]", 422), (b'{"id": "x"}', 422), (b"\xff", 422), (b"[" * 100_000, 422),
     (b'{"id": "\\ud800", "labels": [{"kind": "skip"}], "author": "a"}', 422),
     (b'{"id": "x", "labels": [{"kind": "skip"}], "author": "a", "more": 1}', 422),
     (b'{"id": "x", "labels": [{"kind": "undo", "target": 1}], "author": "a"}', 422),
     (b'{"id": "x", "labels": [{"kind": "skip"}], "author": "a", "expected_revision": "0"}', 422),
     (b'"' + b"x" * 3_000_000 + b'"', 413)],
)  # fmt: skip
async def test_bodies_that_can_not_be_meant(http: httpx.AsyncClient, content: bytes, status: int) -> None:
    async with http:
        headers = {"content-type": "application/json"}
        reply = await http.post("/api/v1/review/labels", content=content, headers=headers)
    assert reply.status_code == status
    assert reply.json()["detail"]


async def test_labels_by_the_api_count_as_in_order_while_the_case_stands_at_the_front(
    http: httpx.AsyncClient, store: SqliteStore
) -> None:
    async with http:
        for case_id, in_order in ((CASE, True), ("case-0000000000000014", False)):
            sent = {"id": case_id, "labels": [{"kind": "skip"}], "author": "ana", "in_order": True}
            assert (await http.post("/api/v1/review/labels", json=sent)).status_code == 200
            case = store.get(case_id)
            assert case is not None
            assert case.labels[0].in_order == in_order


async def test_what_is_not_served_is_a_problem_too(http: httpx.AsyncClient) -> None:
    async with http:
        for method, path, status in (("GET", "/api/v1/review/x", 404), ("GET", "/api/v1/review/undo", 405)):
            reply = await http.request(method, path)
            assert reply.status_code == status
            assert reply.json()["cure"]
        assert reply.headers["allow"] == "POST"
        assert (await http.get("/nothing")).headers["content-type"].startswith("text/plain")


async def test_what_a_case_answers_is_what_its_model_says(http: httpx.AsyncClient) -> None:
    async with http:
        reply = await http.get("/api/v1/review/case", params={"id": CASE})
        assert (await http.get("/api/v1/review/case")).status_code == 422
        assert (await http.get("/api/v1/review/case", params={"id": CASE, "x": "y"})).status_code == 422
    told = CaseAnswer.model_validate(reply.json())
    assert told.interaction.contexts is not None
    assert told.interaction.contexts[0].id == "warranty-2"
    assert told.weight == pytest.approx(20)
    assert told.results[0].verdicts[1].label == "contradicted"


async def test_feedback_comes_from_programs_not_from_pages(app: Site, feedback: Feedback) -> None:
    open_app, _ = site(queue_of(1), feedback=feedback)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=open_app), base_url="http://127.0.0.1") as http:
        said = {"interaction_id": CASE, "score": 0, "comment": "wrong"}
        assert (await http.post("/api/v1/feedback", json=said)).json() == {"outcome": "attached"}
        assert feedback.taken[0]["score"] == 0
        assert (
            await http.post("/api/v1/feedback", json=said, headers={"origin": "http://evil.example"})
        ).status_code == 403
        assert (
            await http.post("/api/v1/feedback", json=said, headers={"sec-fetch-site": "same-site"})
        ).status_code == 403
        assert (await http.post("/api/v1/feedback", data=said)).status_code == 415
        assert (await http.post("/api/v1/feedback", json={**said, "interaction_id": "x"})).status_code == 404
        for bad in ({"score": 1}, {"interaction_id": CASE}, {**said, "score": 2}):
            assert (await http.post("/api/v1/feedback", json=bad)).status_code == 422
    assert len(feedback.taken) == 1
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1") as http:
        assert (await http.post("/api/v1/feedback", json=said)).status_code == 401


async def test_without_a_taker_there_is_no_feedback() -> None:
    made, _ = site([])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=made), base_url="http://127.0.0.1") as http:
        assert (await http.post("/api/v1/feedback", json={})).status_code == 404
        document = (await http.get("/api/v1/openapi.json")).json()
    assert "/api/v1/feedback" not in document["paths"]


async def test_the_document_is_openapi_and_tells_of_every_route(app: Site, http: httpx.AsyncClient) -> None:
    async with http:
        document = (await http.get("/api/v1/openapi.json")).json()
    assert document["openapi"].startswith("3.1")
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert "$defs" not in json.dumps(schema), name
    served = {
        (method.lower(), route.path)
        for route in app.guarded
        for method in getattr(route, "methods", None) or ()
        if route.path.startswith(("/api/v1/review", "/api/v1/feedback")) and method != "HEAD"
    }
    told = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert served == told


_CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


def test_generated_requests_get_documented_answers(app: Site, store: SqliteStore) -> None:
    """Schemathesis makes requests of the document, good and bad; every answer is one that the document tells."""
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=BEARER)
    sent: dict[int, int] = {}
    for result in schema.get_all_operations():
        operation = result.ok()

        @settings(
            max_examples=5,
            deadline=None,
            database=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        def run(case: Any) -> None:
            reply = case.call(headers=BEARER)
            sent[reply.status_code] = sent.get(reply.status_code, 0) + 1
            case.validate_response(reply, checks=_CHECKS)

        # What takes nothing can be sent nothing bad.
        takes = bool(operation.query or operation.body)
        for mode in schemathesis.GenerationMode if takes else (schemathesis.GenerationMode.POSITIVE,):
            given(case=operation.as_strategy(generation_mode=mode))(run)()
    assert sent.keys() >= {200, 422}, sent
    assert store.stats().cases >= 0

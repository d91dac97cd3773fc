"""The HTTP port: who may read what, and hostile content shown inert."""

from __future__ import annotations

import base64
from collections.abc import Callable

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from collector.records.diagnosis import Cause
from collector.web.app import build
from collector.web.health import Health
from collector.web.options import Options
from collector.web.status import CAUSES, CauseRow, Gap, ScoreRow, Status, VersionRow, Worst

HOSTILE = "<script>alert(1)</script>"


def _status() -> Status:
    row = ScoreRow(
        metric="faithfulness", kind="judged", tier=None, segment={"service": HOSTILE}, window_seconds=3600, mean=0.8,
        lower=0.7, upper=0.9, n_eff=120.0, coverage=0.5, scored=120, not_applicable=3, failed=1,
    )  # fmt: skip
    empty = ScoreRow(
        metric="groundedness", kind="local", tier="fast", segment={}, window_seconds=300, mean=None, lower=None,
        upper=None, n_eff=0, coverage=None, scored=0, not_applicable=0, failed=0, conditional=True,
    )  # fmt: skip
    return Status(
        version="1", uptime_seconds=61, ready=False, reasons={"judge": HOSTILE}, judge="off", funnel={"found": 3},
        estimates=[row, empty], worst=[Worst("ab" * 16, "i", HOSTILE, "faithfulness", "judged", 0.1, 0.0)],
        gaps=[Gap(HOSTILE, "question", 2, "map it")], notes=[HOSTILE],
        causes=[CauseRow("unsupported", "judged", 0.25, 3600, CAUSES[Cause.UNSUPPORTED])],
        versions=[
            VersionRow(HOSTILE, version, "faithfulness", "judged", None, 3600, 0.5, 0.4, 0.6, 50.0)
            for version in ("1", HOSTILE)
        ],
    )  # fmt: skip


def _client(*, loopback: bool = True, token: Callable[[], str | None] = lambda: None) -> httpx.AsyncClient:
    health = Health()

    async def render(accept: str, encoding: str, scraper: str) -> tuple[bytes, dict[str, str]]:
        return b"x 1\n", {"content-type": "text/plain; version=0.0.4"}

    async def otlp(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("otlp " + scope["path"])(scope, receive, send)

    app = build(
        options=Options(),
        health=health,
        status=_status,
        explain=lambda trace_id: (
            [{"time": "t", "stage": "sampling", "text": HOSTILE, "facts": {"policy": HOSTILE}}]
            if trace_id == "known"
            else []
        ),
        render_metrics=render,
        otlp=otlp,
        token=token,
        loopback=loopback,
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")


@pytest.mark.parametrize("path", ["/", "/why/known"])
async def test_pages_escape_everything_and_carry_a_strict_policy(path: str) -> None:
    async with _client() as client:
        reply = await client.get(path)
    assert reply.status_code == 200
    assert HOSTILE not in reply.text
    assert "&lt;script&gt;" in reply.text
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")


async def test_the_page_says_where_answers_go_wrong_and_since_which_release() -> None:
    async with _client() as client:
        page = (await client.get("/")).text
        told = (await client.get("/api/v1/status")).json()
    assert "Where answers go wrong" in page
    assert "25.0 %" in page
    assert CAUSES[Cause.UNSUPPORTED] in page
    assert "By release" in page
    assert told["causes"][0]["cause"] == "unsupported"
    assert told["versions"][0]["version"] == "1"
    assert set(CAUSES) == set(Cause), "each cause is explained"


async def test_otlp_paths_go_to_the_receiver_and_health_says_why() -> None:
    async with _client() as client:
        assert (await client.post("/v1/traces")).text == "otlp /v1/traces"
        assert (await client.get("/healthz")).status_code == 200
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.text) == (503, "service: starting\n")
        assert (await client.get("/metrics")).text == "x 1\n"
        assert (await client.get("/api/v1/status")).json()["estimates"][0]["mean"] == 0.8
        assert (await client.get("/api/v1/why/unknown")).status_code == 404
        assert (await client.get("/static/groundwatch.css")).status_code == 200
        assert (await client.get("/static/../app.py")).status_code == 404


@pytest.mark.parametrize("path", ["/", "/why/known", "/api/v1/status", "/api/v1/why/known"])
async def test_beyond_loopback_page_and_api_are_closed_without_a_token(path: str) -> None:
    async with _client(loopback=False) as client:
        reply = await client.get(path)
        assert reply.status_code == 403
        assert "web.token_file" in reply.text
        assert (await client.get("/metrics")).status_code == 200
        assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize("loopback", [True, False])
async def test_a_configured_token_is_asked_for_as_bearer_or_basic(loopback: bool) -> None:
    async with _client(loopback=loopback, token=lambda: "sesame") as client:
        assert (await client.get("/")).status_code == 401
        assert (await client.get("/", headers={"authorization": "Bearer wrong"})).status_code == 401
        assert (await client.get("/", headers={"authorization": "Basic !!"})).status_code == 401
        basic = base64.b64encode(b"x:sesame").decode()
        assert (await client.get("/", headers={"authorization": f"Basic {basic}"})).status_code == 200
        assert (await client.get("/", headers={"authorization": "Bearer sesame"})).status_code == 200

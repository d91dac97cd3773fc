"""Change detection over HTTP and on the page: who may change what, and what people see."""

from __future__ import annotations

import json
from collections.abc import Callable

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from collector.web.app import build
from collector.web.drift import routes
from collector.web.health import Health
from collector.web.options import Options
from collector.web.status import Status
from tests.unit.estimates.detect_simulator import READY, World

HOSTILE = "<script>alert(1)</script>"
JSON = {"content-type": "application/json"}


def drifted(service: str = "shop") -> World:
    """A total that learns, and a segment in alarm."""
    world = World(
        {
            "metrics": ["faithfulness"],
            "judged_per_month": 50,
            "level_days": READY,
            "levels": [{"metric": "faithfulness", "mean": 0.8, "segment": {"service": service}}],
        }
    )
    world.feed([0.9] * 101 + [0.0] * 30, every=1, service=service)
    return world


def client(
    world: World,
    *,
    loopback: bool = True,
    token: Callable[[], str | None] = lambda: None,
    host: str = "http://127.0.0.1:4318",
) -> httpx.AsyncClient:
    async def render(accept: str, encoding: str, scraper: str) -> tuple[bytes, dict[str, str]]:
        return b"", {}

    async def otlp(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("otlp")(scope, receive, send)

    app = build(
        options=Options(),
        health=Health(),
        status=lambda: Status("1", 61, True, {}, "off", {"found": 3}, watched=world.detection.watched()),
        explain=lambda trace_id: [],
        render_metrics=render,
        otlp=otlp,
        token=token,
        loopback=loopback,
        more=routes(world.detection),
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=host)


async def test_what_is_watched_is_listed_those_in_alarm_first() -> None:
    async with client(drifted()) as web:
        series = (await web.get("/api/v1/drift")).json()["series"]
    assert [(one["series"], one["state"]) for one in series] == [
        ("faithfulness/service=shop", "alarm"),
        ("faithfulness", "learning"),
    ]
    assert series[0]["level"] == 0.8
    assert series[0]["evidence"] > 1
    assert series[1]["evidence"] is None


async def test_an_alarm_is_acknowledged_reset_and_learned_anew() -> None:
    world = drifted()
    body = {"series": "faithfulness/service=shop"}
    async with client(world) as web:
        done = await web.post("/api/v1/drift/ack", json=body)
        assert (done.status_code, done.json()["state"]) == (200, "watching")
        assert (await web.post("/api/v1/drift/reset", json=body)).json()["acknowledged"] is None
        assert (await web.post("/api/v1/drift/learn", json=body)).json()["state"] == "learning"
    assert [line["what"] for line in world.told("detector_changed_by_hand")] == [
        "acknowledged", "reset", "learns anew",
    ]  # fmt: skip


async def test_a_get_changes_nothing() -> None:
    world = drifted()
    async with client(world) as web:
        for action in ("ack", "reset", "learn"):
            reply = await web.get(f"/api/v1/drift/{action}", params={"series": "faithfulness/service=shop"})
            assert reply.status_code == 405
    assert world.of("faithfulness/service=shop").state == "alarm"


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b'{"series": "faithfulness"}', {"content-type": "text/plain"}, 415),
        (b'{"series": "faithfulness"}', {}, 415),
        (b"series=faithfulness", {"content-type": "application/x-www-form-urlencoded"}, 415),
        (b"{", JSON, 400),
        (b"[]", JSON, 400),
        (b'{"series": 1}', JSON, 400),
        (b'{"series": ""}', JSON, 400),
        (b'{"series": "' + b"x" * 5_000 + b'"}', JSON, 400),
        (b'{"series": "groundedness"}', JSON, 404),
        (b'{"series": "faithfulness"}', {**JSON, "origin": "https://elsewhere.example"}, 403),
        (b'{"series": "faithfulness"}', {**JSON, "origin": "null"}, 403),
        (b'{"series": "faithfulness"}', {**JSON, "host": "rebound.example:4318"}, 403),
        (
            b'{"series": "faithfulness"}',
            {**JSON, "host": "rebound.example", "origin": "http://rebound.example"},
            403,
        ),
        (b'{"series": "faithfulness"}', {**JSON, "origin": "http://127.0.0.1:4318"}, 200),
        (b'{"series": "faithfulness"}', {"content-type": "application/json; charset=utf-8"}, 200),
        (b'{"series": "faithfulness"}', {**JSON, "host": "localhost:4318"}, 200),
        (b'{"series": "faithfulness"}', {**JSON, "host": "[::1]:4318"}, 200),
    ],
)
async def test_what_another_page_can_make_a_browser_send_is_refused(
    content: bytes, headers: dict[str, str], status: int
) -> None:
    async with client(drifted()) as web:
        reply = await web.post("/api/v1/drift/reset", content=content, headers=headers)
    assert reply.status_code == status
    if status == 404:
        assert reply.json()["series"] == ["faithfulness/service=shop", "faithfulness"]


async def test_beyond_loopback_the_token_is_asked_for() -> None:
    world = drifted()
    body = json.dumps({"series": "faithfulness"}).encode()
    async with client(world, loopback=False, token=lambda: "sesame", host="http://watch.example") as web:
        for path in ("/api/v1/drift/reset", "/api/v1/drift/ack", "/api/v1/drift/learn"):
            assert (await web.post(path, content=body, headers=JSON)).status_code == 401
            right = {**JSON, "authorization": "Bearer sesame"}
            assert (await web.post(path, content=body, headers=right)).status_code == 200
        assert (await web.get("/api/v1/drift")).status_code == 401
    async with client(world, loopback=False) as web:
        assert (await web.post("/api/v1/drift/reset", content=body, headers=JSON)).status_code == 403


async def test_the_page_has_a_line_for_each_series_in_alarm() -> None:
    world = drifted(HOSTILE)
    async with client(world) as web:
        page = (await web.get("/")).text
        assert "Worse than it was" in page
        assert "at least 0.800" in page
        assert "2023-11-14 22:15 UTC" in page
        assert "groundwatch drift ack &#39;faithfulness/service=&lt;script&gt;" in page
        assert HOSTILE not in page
        assert "watches 1 of 2 series; the others learn their baseline" in page
        assert (await web.get("/api/v1/status")).json()["watched"][0]["state"] == "alarm"
        world.detection.acknowledge(f"faithfulness/service={HOSTILE}")
        assert "Worse than it was" not in (await web.get("/")).text


async def test_the_page_says_nothing_of_it_where_nothing_is_watched() -> None:
    async with client(World({"enabled": False})) as web:
        page = (await web.get("/")).text
    assert "Change detection" not in page
    assert "Worse than it was" not in page

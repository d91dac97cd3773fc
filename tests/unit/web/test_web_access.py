"""Who gets in, under which name, and what another site can not make a browser do."""

from __future__ import annotations

import asyncio
import base64
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from starlette.routing import Mount, Route

from collector.review.store import ReviewStore
from collector.web.links import BadTemplate, TraceLink
from collector.web.options import Options
from collector.web.passwords import Busy, Passwords, file_or_env_users, line, read_lines
from tests.support.review_pages import queue_of, site

CASE = "case-0000000000000001"
LINES = {"ana": line("ana", "open: sesame").partition(":")[2]}
READS = ("/", "/review", "/api/v1/review/cases")


def basic(name: str, password: str) -> dict[str, str]:
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def client(
    *, client_address: str = "127.0.0.1", base: str = "http://127.0.0.1", **more: Any
) -> tuple[httpx.AsyncClient, ReviewStore]:
    app, store = site(queue_of(3), **more)
    transport = httpx.ASGITransport(app=app, client=(client_address, 1234))
    return httpx.AsyncClient(transport=transport, base_url=base), store


def users() -> Mapping[str, str]:
    return LINES


@pytest.mark.parametrize(
    "more",
    [
        {"token": lambda: "sesame"},
        {"users": users},
        {"options": Options(proxy_user_header="x-user", proxy_networks=("10.0.0.0/8",))},
        {"loopback": False},
    ],
)
async def test_no_page_and_no_call_without_authentication(more: dict[str, Any]) -> None:
    """Every route that the application has is walked, so a new one is tried too."""
    app, _ = site(queue_of(3), **more)
    transport = httpx.ASGITransport(app=app, client=("127.0.0.1", 1234))
    walked = 0
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        for route in app.guarded:
            assert isinstance(route, Route | Mount)
            path = re.sub(r"\{.*?\}", "x", route.path) + ("/review.js" if isinstance(route, Mount) else "")
            for method in sorted(getattr(route, "methods", None) or {"GET"}):
                reply = await http.request(method, path)
                assert reply.status_code in (401, 403), (method, path)
                walked += 1
        assert walked > 25
        refused = await http.get("/api/v1/review/cases")
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["cure"]
        assert (await http.get("/metrics")).status_code == 200


async def test_a_name_and_a_password_let_in_and_name_the_author() -> None:
    http, store = client(users=users)
    async with http:
        for wrong in (basic("ana", "x"), basic("eve", "open: sesame"), basic("ana", ""), basic("ana", "x" * 5000)):
            assert (await http.get("/review", headers=wrong)).status_code == 401
        http.headers.update(basic("ana", "open: sesame"))
        assert (await http.get("/review")).status_code == 200
        session = (await http.get("/api/v1/review/session")).json()
        assert session["author"] == "ana"
        http.cookies.set("groundwatch_author", "eve")
        body = {"id": CASE, "labels": [{"kind": "comment", "value": "x"}]}
        headers = {"x-groundwatch-csrf": session["csrf_token"]}
        forged = await http.post("/api/v1/review/labels", json={**body, "author": "eve"}, headers=headers)
        assert forged.status_code == 403
        assert (await http.post("/api/v1/review/labels", json=body, headers=headers)).status_code == 200
    case = store.get(CASE)
    assert case is not None
    assert case.in_effect.authors == ("ana",)


async def test_a_proxy_is_believed_by_its_own_address_only() -> None:
    options = Options(proxy_user_header="X-Forwarded-User", proxy_networks=("10.0.0.0/8", "::1"))
    for address, allowed in (
        ("10.1.2.3", True),
        ("::1", True),
        ("::ffff:10.1.2.3", True),
        ("192.0.2.1", False),
        ("", False),
    ):
        http, _ = client(client_address=address, options=options, loopback=False)
        async with http:
            headers = {"x-forwarded-user": "ana", "x-forwarded-for": "10.1.2.3"}
            reply = await http.get("/api/v1/review/session", headers=headers)
            assert (reply.status_code == 200) == allowed, address
            if allowed:
                assert reply.json()["author"] == "ana"
                assert "secure" not in reply.headers["set-cookie"].lower()
                assert (await http.get("/review")).status_code == 401, "without a name"
                twice = [("x-forwarded-user", "ana"), ("x-forwarded-user", "eve")]
                assert (await http.get("/review", headers=twice)).status_code == 401
                http.cookies.clear()
                secure = await http.get("/review", headers={**headers, "x-forwarded-proto": "https"})
                assert "secure" in secure.headers["set-cookie"].lower()


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:4318", 200), ("localhost", 200), ("[::1]:4318", 200), ("shop.internal", 200), ("evil.example", 403),
     ("127.0.0.1.evil.example", 403), ("", 403)],
)  # fmt: skip
async def test_on_loopback_a_foreign_name_is_refused(host: str, status: int) -> None:
    http, _ = client(options=Options(allowed_hosts=("shop.internal",)))
    async with http:
        for path in ("/review", "/", "/api/v1/review/cases"):
            assert (await http.get(path, headers={"host": host})).status_code == status


async def test_a_form_without_the_token_of_its_session_changes_nothing() -> None:
    http, store = client()
    other, _ = client()
    async with http, other:
        http.cookies.set("groundwatch_author", "ana")
        token = (await http.get("/api/v1/review/session")).json()["csrf_token"]
        foreign = (await other.get("/api/v1/review/session")).json()["csrf_token"]
        form = {"id": CASE, "revision": "0", "from": "queue", "agree:faithfulness": "agree"}
        for wrong in ("", "x", foreign, token[:-1], "é" * 64):
            reply = await http.post("/review/label", data={**form, "csrf": wrong})
            assert reply.status_code == 403
            assert "agree:faithfulness" not in reply.text, (
                "what another site sends is not shown as if it were typed here"
            )
        for elsewhere in ("cross-site", "same-site", "none"):
            headers = {"origin": "null", "sec-fetch-site": elsewhere}
            reply = await http.post("/review/label", data={**form, "csrf": "x"}, headers=headers)
            assert reply.status_code == 403
            assert "agree:faithfulness" not in reply.text, elsewhere
        # From a page of our own that went stale: nothing is saved, and what was typed is kept.
        ours = {"origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
        stale = await http.post(
            "/review/label", data={**form, "csrf": "old", "comment": "long thought"}, headers=ours
        )
        assert stale.status_code == 403
        assert "long thought" in stale.text
        case = store.get(CASE)
        assert case is not None
        assert case.labels == ()
        http.cookies.delete("groundwatch_session")
        assert (await http.post("/review/label", data={**form, "csrf": token})).status_code == 403
        # The token in a JSON body's place, a form in JSON's place, a cookie without the header.
        body = {"id": CASE, "author": "ana", "labels": [{"kind": "comment", "value": "x"}]}
        assert (await http.post("/api/v1/review/labels", json=body)).status_code == 403
        good = await http.get("/api/v1/review/session")
        headers = {"x-groundwatch-csrf": good.json()["csrf_token"]}
        plain = await http.post(
            "/api/v1/review/labels", content=b"{}", headers={**headers, "content-type": "text/plain"}
        )
        assert plain.status_code == 415
        assert (await http.post("/api/v1/review/labels", json=body, headers=headers)).status_code == 200
        for path in ("/review/label", "/review/undo", "/api/v1/review/erase"):
            assert (await http.get(path)).status_code == 405, "nothing changes by a GET"


async def test_cookies_can_not_be_read_by_scripts_nor_sent_by_other_sites() -> None:
    for base, secure in (("http://127.0.0.1", False), ("https://127.0.0.1", True)):
        http, _ = client(base=base)
        async with http:
            cookie = (await http.get("/review")).headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert ("secure" in cookie) == secure


async def test_the_bearer_token_needs_no_session() -> None:
    http, store = client(token=lambda: "sesame", loopback=False)
    async with http:
        body = {
            "id": CASE,
            "author": "robot",
            "labels": [{"kind": "agree", "value": "agree", "metric": "faithfulness"}],
        }
        as_password = await http.post("/api/v1/review/labels", json=body, headers=basic("x", "sesame"))
        assert as_password.status_code == 403, "a browser sends Basic by itself"
        bearer = {"authorization": "Bearer sesame"}
        assert (await http.post("/api/v1/review/labels", json=body, headers=bearer)).status_code == 200
    case = store.get(CASE)
    assert case is not None
    assert case.labels[0].source == "api"


async def test_read_only_takes_nothing() -> None:
    http, store = client(options=Options(read_only=True))
    async with http:
        token = (await http.get("/api/v1/review/session")).json()["csrf_token"]
        http.cookies.set("groundwatch_author", "ana")
        form = {"id": CASE, "revision": "0", "csrf": token, "comment": "x"}
        assert (await http.post("/review/label", data=form)).status_code == 403
        body = {"id": CASE, "author": "ana", "labels": [{"kind": "comment", "value": "x"}]}
        for path, sent in (("labels", body), ("undo", {"id": CASE}), ("erase", {"kind": "case", "id": CASE})):
            reply = await http.post(f"/api/v1/review/{path}", json=sent, headers={"x-groundwatch-csrf": token})
            assert reply.status_code == 403
        assert "<form" not in (await http.get(f"/review/case?id={CASE}")).text
    assert store.get(CASE) is not None


async def test_after_saying_a_name_one_stays_inside() -> None:
    http, _ = client()
    async with http:
        token = (await http.get("/api/v1/review/session")).json()["csrf_token"]
        for to in (
            "https://evil.example/",
            "//evil.example",
            "/\\evil.example",
            "/review\r\nx: y",
            "javascript:alert(1)",
        ):
            reply = await http.post("/review/name", data={"csrf": token, "author": "Ana  B", "to": to})
            assert (reply.status_code, reply.headers["location"]) == (303, "/review"), to
        assert "Ana%20B" in reply.headers["set-cookie"]
        bad = await http.post("/review/name", data={"csrf": token, "author": "a\u202eb", "to": "/review"})
        assert bad.status_code == 422


async def test_guessing_passwords_is_bounded() -> None:
    """Checks stand in a line; what is over its length is sent away, and a right one is remembered."""
    checks = Passwords(users)
    results = await asyncio.gather(*(checks.right("ana", f"guess {n}") for n in range(40)), return_exceptions=True)
    assert sum(isinstance(one, Busy) for one in results) == 24
    assert True not in results
    assert await checks.right("ana", "open: sesame")
    lost = Passwords(lambda: {"ana": "scrypt:not base64:x", "ben": "plain"})
    assert not await lost.right("ana", "x")
    assert not await lost.right("ben", "plain")


def _passwords(name: str, password: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "collector.web.passwords", name]
    return subprocess.run(command, input=f"{password}\n", capture_output=True, text=True, check=False)


async def test_the_command_prints_a_line_that_lets_in() -> None:
    made = _passwords("ana", "open: sesame")
    checks = Passwords(lambda: read_lines(made.stdout))
    assert await checks.right("ana", "open: sesame")
    assert not await checks.right("ana", "open: sesam")
    bad = _passwords("a:b", "x")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "can not be a name" in bad.stderr


def test_lines_of_people(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text(f"# people\n\n{line('ana', 'x')}\nbroken\nben:plaintext\n", encoding="utf-8")
    read = file_or_env_users(path, None, {})
    assert read is not None
    assert set(read()) == {"ana"}
    path.unlink()
    assert read() == {}, "closed, not open"
    from_environment = file_or_env_users(None, "USERS", {"USERS": line("ben", "y")})
    assert from_environment is not None
    assert set(from_environment()) == {"ben"}
    assert file_or_env_users(None, None, {}) is None
    assert line("ana", "x") != line("ana", "x"), "salted"
    assert read_lines("") == {}
    for name in ("", "a:b", " a", "a\n"):
        with pytest.raises(ValueError, match="can not be a name"):
            line(name, "x")


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("javascript:alert('{trace_id}')", "http"),
        ("ftp://x/{trace_id}", "http"),
        ("https:///{trace_id}", "host"),
        ("https://{trace_id}.example/", "host"),
        ("https://x.example/", "trace_id"),
        ("https://x.example/\n{trace_id}", "white space"),
        ("https://x.example\\@y/{trace_id}", "backslash"),
        ("https://[x/{trace_id}", "no address"),
    ],
)
def test_templates_of_trace_links_that_are_refused(template: str, problem: str) -> None:
    with pytest.raises(BadTemplate, match=problem):
        TraceLink(template)
    with pytest.raises(ValidationError, match="trace_link"):
        Options(trace_link=template)


@pytest.mark.parametrize(
    "template",
    [
        'https://grafana.example/explore?left={"datasource":"tempo","queries":[{"query":"{trace_id}"}]}',
        "https://jaeger.example/trace/{trace_id}?uiFind={span_id}",
        "https://langfuse.example/project/P/traces/{trace_id}",
        "http://phoenix.example:6006/redirects/traces/{trace_id}",
    ],
)
def test_values_can_not_leave_their_place(template: str) -> None:
    made = TraceLink(template).of(trace_id='"/../?#<é\udc80', span_id="a&b")
    assert made == template.replace("{trace_id}", "%22%2F..%2F%3F%23%3C%C3%A9%3F").replace("{span_id}", "a%26b")


@pytest.mark.parametrize(
    "bad",
    [{"proxy_user_header": "x-user"}, {"proxy_networks": ["10.0.0.0/8"]},
     {"proxy_user_header": "x user", "proxy_networks": ["::1"]}, {"proxy_user_header": "x", "proxy_networks": ["ten"]}],
)  # fmt: skip
def test_half_a_proxy_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Options.model_validate(bad)

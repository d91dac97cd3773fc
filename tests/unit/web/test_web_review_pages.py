"""The review pages without a browser: hostile content in every field, hostile requests, conflicts, next cases."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import httpx
import pytest

from collector.pipeline.clock import ManualClock
from collector.review.case import Case, CaseResult, OutcomeKind, Pick, Reason
from collector.review.labels import Draft, LabelKind
from collector.review.sqlite import SqliteStore
from collector.review.store import ReviewStore, StoreUnavailable
from collector.web.options import Options
from collector.web.review.desk import LOOKING_SECONDS, Desk
from collector.web.review.held import Held
from scorers.interaction import Damage, Field, Interaction
from tests.support.review_pages import hostile, opened, queue_of, site, warranty

CASE = "case-0000000000000001"
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus=alert(1) autofocus='",
    "</textarea></title></style><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}<!--",
    "javascript:alert(1)",
    "\u202e\u2066evil\u2069\x00\x1b[31m\u2028\udc80",
)
OURS = set(
    re.findall(
        r"\w+",
        "a abbr aside bdi body br button code dd details div dl dt fieldset form h1 h2 head header html input kbd "
        "label legend li link main mark meta meter nav ol option p pre s script section select span strong sup summary "
        "table tbody td textarea th thead time title tr ul",
    )
)
"""The elements that our templates are made of."""


class Tags(HTMLParser):
    """The elements and attributes that a browser would make of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str | None] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append(dict(attrs).get("src"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with opened(tmp_path / "review.sqlite") as made:
        yield made


def client(
    store: ReviewStore, cases: list[Case], options: Options | None = None, author: str = "ana"
) -> httpx.AsyncClient:
    app, _ = site(cases, store=store, options=options)
    made = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")
    if author:
        made.cookies.set("groundwatch_author", author)
    return made


async def send(http: httpx.AsyncClient, path: str, **form: str) -> httpx.Response:
    token = (await http.get("/api/v1/review/session")).json()["csrf_token"]
    return await http.post(path, data={"csrf": token, **form})


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_in_every_field_is_text(store: SqliteStore, text: str) -> None:
    options = Options(trace_link="https://traces.example/{trace_id}?s={session}&v={service}")
    async with client(store, [hostile(text)], options) as http:
        sendable = text.encode("utf-8", "replace").decode()
        form = {"id": CASE, "revision": "0", "from": "queue", "comment": sendable, "reference": sendable}
        assert (await send(http, "/review/label", **form)).status_code in (303, 400)
        everything = urlencode(dict.fromkeys(("text", "metric", "cause", "service", "author", "score_min"), text),
                               errors="replace")  # fmt: skip
        for path in ("/review", "/review/search", f"/review/search?{everything}", f"/review/case?id={CASE}",
                     f"/review/case?id={CASE}&full=1&from={quote(text, errors='replace')}",
                     f"/review/case?id={quote(text, errors='replace')}",
                     f"/review/name?to={quote(text, errors='replace')}", "/"):  # fmt: skip
            page = await http.get(path)
            assert page.status_code in (200, 400, 404), path
            found = Tags(page.text)
            assert set(found.tags) <= OURS, path
            assert set(found.scripts) <= {"/static/review.js", "/static/status.js"}, path
            assert not [
                name for name, _ in found.attributes if name.startswith("on") or name in ("autofocus", "style")
            ]
            links = [value or "" for name, value in found.attributes if name in ("href", "src", "action")]
            assert all(re.match(r"(/|#|data:,$|https://traces\.example/)", value) for value in links), path
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b\u2028]", page.text)
            assert "49{%" not in page.text
            assert "unsafe" not in page.headers["content-security-policy"]


async def test_what_is_typed_into_filters_stays_a_value(store: SqliteStore) -> None:
    """SQL's own characters, in every parameter, find nothing and break nothing."""
    async with client(store, queue_of(3)) as http:
        for evil in (
            "'; DROP TABLE cases; --",
            '" OR 1=1 --',
            "%",
            "*",
            '"',
            "NEAR(a b)",
            "question:water",
            "a\x00b",
            ")(",
        ):
            for name in (
                "text",
                "metric",
                "cause",
                "service",
                "author",
                "trace_id",
                "session",
                "mark",
                "model",
                "after",
            ):
                for base in ("/review/search", "/api/v1/review/cases"):
                    reply = await http.get(base, params={name: evil})
                    assert reply.status_code in (200, 400, 422), (name, evil)
                    if base.startswith("/api") and reply.status_code == 200 and name not in ("text", "metric"):
                        assert reply.json()["cases"] == [], (name, evil)
            for path in ("/review/case", "/api/v1/review/case"):
                assert (await http.get(path, params={"id": evil})).status_code == 404
        assert store.stats().cases == 3


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
     "/review/../../etc/passwd", "/review/case?id=../../etc/passwd", "/api/v1/review/case?id=%2e%2e%2fapp.py"],
)  # fmt: skip
async def test_no_path_leads_out(store: SqliteStore, path: str) -> None:
    async with client(store, []) as http:
        reply = await http.get(path)
        assert reply.status_code == 404
        assert "root:" not in reply.text
        assert "import" not in reply.text


async def test_bodies_are_bounded_and_must_be_forms(store: SqliteStore) -> None:
    async with client(store, queue_of(1)) as http:
        assert (await send(http, "/review/label", id=CASE, revision="0", comment="x" * 600_000)).status_code == 400
        many = {f"claim:{n}:faithfulness": "supported" for n in range(3000)}
        assert (await send(http, "/review/label", id=CASE, revision="0", **many)).status_code == 400
        reply = await http.post("/review/label", content=b"{}", headers={"content-type": "application/json"})
        assert reply.status_code == 400
        for revision in ("", "x", "-1", "9" * 30, "٣"):
            assert (await send(http, "/review/label", id=CASE, revision=revision, comment="x")).status_code == 400
        meaningless = {"score:faithfulness": "2", "score:x": "nan", "claim:x:faithfulness": "supported",
                       "claim:1:faithfulness": "maybe", "passage:1": "so so", "agree:": "agree"}  # fmt: skip
        for name, value in meaningless.items():
            reply = await send(http, "/review/label", id=CASE, revision="0", comment="kept text", **{name: value})
            assert reply.status_code == 422, name
            assert "kept text" in reply.text, "what was typed is not lost"
        case = store.get(CASE)
        assert case is not None
        assert case.labels == ()


async def test_a_conflict_shows_what_the_other_did_and_keeps_what_one_typed(store: SqliteStore) -> None:
    async with client(store, queue_of(2)) as http:
        store.label(CASE, [Draft(LabelKind.AGREE, "agree", "faithfulness")], author="ben", expected_revision=0)
        form = {"id": CASE, "revision": "0", "from": "queue", "agree:faithfulness": "disagree", "comment": "mine"}
        reply = await send(http, "/review/label", **form)
        assert reply.status_code == 409
        assert "Somebody was there first" in reply.text
        assert "ben" in reply.text
        assert "mine</textarea>" in reply.text
        assert 'name="revision" value="1"' in reply.text
        undo = await send(http, "/review/undo", id=CASE, revision="0")
        assert undo.status_code == 409
        # What the other put into the golden set is not taken back by a box that was never touched.
        store.label(CASE, [Draft(LabelKind.GOLDEN, True)], author="ben", expected_revision=1)
        reply = await send(http, "/review/label", **{**form, "revision": "1", "shown_golden": "1"})
        assert re.search(r'name="golden" value="true"[^>]* checked', reply.text)
        # Nothing chosen on a page that others have gone past: told of both.
        late = await send(http, "/review/label", id=CASE, revision="1", shown_golden="1", golden="true")
        assert late.status_code == 422
        assert "Nothing was labelled" in late.text
        assert "Somebody was there first" in late.text
        nothing = await send(http, "/review/undo", id=CASE, revision="2")
        assert nothing.status_code == 400


async def test_only_cases_in_their_turn_count_as_in_order(store: SqliteStore) -> None:
    """The page's address alone must not say it: a case from the far end, or one labelled before, is none."""
    async with client(store, queue_of(60)) as http:
        for number, in_order in ((1, True), (60, False)):
            case_id = f"case-{number:016x}"
            form = {"id": case_id, "revision": "0", "from": "queue", "comment": "x"}
            assert (await send(http, "/review/label", **form)).status_code == 303
            case = store.get(case_id)
            assert case is not None
            assert case.labels[0].in_order == in_order


async def test_the_list_goes_on_page_by_page_and_ends(store: SqliteStore) -> None:
    cases = [warranty(n, reason=Reason.LOW_SCORE) for n in range(1, 6)]
    async with client(store, cases) as http:
        seen, where = [], "/review/next?" + urlencode({"from": "reason=low_score&sort=oldest"})
        for _ in range(10):
            reply = await http.get(where)
            if reply.status_code == 200:
                break
            address = httpx.URL(reply.headers["location"])
            seen.append(address.params["id"])
            where = "/review/next?" + urlencode({"from": address.params["from"], "id": address.params["id"]})
        assert seen == [f"case-{n:016x}" for n in range(1, 6)]
        assert "You are through" in reply.text
        odd = await http.get("/review/next", params={"from": "score_min=9&nonsense=1"})
        assert odd.status_code == 200, "an address that means nothing is the control part, which is empty"


async def test_a_name_is_asked_once_and_kept(store: SqliteStore) -> None:
    async with client(store, queue_of(2), author="") as http:
        assert "Your name, asked once" in (await http.get(f"/review/case?id={CASE}")).text
        form = {"id": CASE, "revision": "0", "comment": "typed"}
        asked = await send(http, "/review/label", **form)
        assert asked.status_code == 422
        assert "typed</textarea>" in asked.text
        assert (await send(http, "/review/undo", id=CASE, revision="0")).status_code == 400
        given = await send(http, "/review/label", **form, author="Zoë & <b>")
        assert given.status_code == 303
        page = await http.get(f"/review/case?id={CASE}")
        assert "you are <bdi>Zoë &amp; &lt;b&gt;</bdi>" in page.text


async def test_a_case_without_parts_says_what_is_missing(store: SqliteStore) -> None:
    bare = Case(
        id="bare/../?&=#",
        interaction=Interaction("bare", damage={Field.QUESTION: Damage.HIDDEN}),
        picks=(Pick(Reason.FEEDBACK, 1e300),),
        ended_unix=1_700_000_000.0,
        results=(CaseResult("faithfulness", "judged", OutcomeKind.FAILED, reason="deadline"),),
    )
    empty = Case(
        id="empty",
        interaction=Interaction("empty", question="", contexts=(), response=""),
        picks=(),
        ended_unix=1_700_000_000.0,
    )
    async with client(store, [bare, empty]) as http:
        page = await http.get("/review/case", params={"id": "bare/../?&=#"})
        assert page.status_code == 200
        assert "not known (hidden)" in page.text
        assert "failed: deadline" in page.text
        assert (await send(http, "/review/label", id="bare/../?&=#", revision="0", comment="x")).status_code == 303
        page = await http.get("/review/case", params={"id": "empty"})
        assert "Retrieval found nothing." in page.text


async def test_a_store_that_does_not_answer_is_an_error_and_no_crash(tmp_path: Path) -> None:
    with opened(tmp_path / "review.sqlite") as store:
        http = client(store, queue_of(1))
    async with http:
        for path in ("/review", "/review/search", f"/review/case?id={CASE}", "/review/next"):
            reply = await http.get(path)
            assert reply.status_code == 503, path
            assert "does not answer" in reply.text
        assert (await send(http, "/review/label", id=CASE, revision="0", comment="x")).status_code == 503
        assert (await http.get("/api/v1/review/cases")).status_code == 503
        assert (await http.get("/")).status_code == 200


async def test_the_status_page_leads_to_the_cases_that_are_kept(store: SqliteStore) -> None:
    async with client(store, queue_of(2)) as http:
        page = (await http.get("/")).text
    assert page.count("look at the case") == 2, "and not for the one that is no case"
    assert f"/review/case?id={CASE}" in page


def test_two_people_sit_at_different_cases_until_they_leave() -> None:
    clock = ManualClock()
    desk = Desk(clock)
    desk.sit("a", "ana")
    assert desk.taken("ben") == {"a"}
    assert desk.taken("ana") == frozenset()
    assert desk.others("a", "ben") == ["ana"]
    desk.leave("a", "ana")
    assert desk.taken("ben") == frozenset()
    desk.sit("a", "ana")
    clock.advance(LOOKING_SECONDS + 1)
    assert desk.taken("ben") == frozenset()
    for number in range(3000):
        desk.sit(str(number), "ana")
    assert len(desk.taken("ben")) == 1000


async def test_numbers_that_cost_much_are_a_little_old_and_never_very() -> None:
    clock, made = ManualClock(), [0]

    def make() -> int:
        made[0] += 1
        if made[0] == 4:
            raise StoreUnavailable("busy")
        return made[0]

    held = Held(make, clock=clock, fresh_seconds=5, good_seconds=60)
    assert [await held.get(), await held.get()] == [1, 1]
    clock.advance(6)
    assert await held.get() == 1, "given once more, and made anew meanwhile"
    while made[0] < 2:
        await asyncio.sleep(0)
    clock.advance(61)
    assert await held.get() == 3, "too old: waited for"
    clock.advance(6)
    assert await held.get() == 3
    while made[0] < 4:
        await asyncio.sleep(0)
    assert await held.get() == 3, "what fails meanwhile leaves what there is"

"""The review pages in a real browser: labelling by keys, search, undo, two people, hostile content, dark mode."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, BrowserContext, Page, expect

from collector.review.case import Case, Reason
from collector.review.labels import Draft, LabelKind
from collector.review.store import ReviewStore
from collector.web.options import Options
from collector.web.server import HttpServer
from tests.integration.conftest import LONGEST_WAIT_MS
from tests.support.review_pages import hostile, opened, queue_of, site, warranty

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Desk:
    """One person at a browser of their own, and what the browser complained of or asked others for."""

    page: Page
    base: str
    store: ReviewStore
    said: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    async def go(self, path: str) -> None:
        await self.page.goto(self.base + path)

    def labels(self, case_id: str) -> list[tuple[LabelKind, object]]:
        case = self.store.get(case_id)
        assert case is not None
        return [(one.kind, one.value) for one in case.in_effect.labels]


Open = Callable[..., Awaitable[Desk]]


@asynccontextmanager
async def _served(cases: list[Case], path: Path, options: Options) -> AsyncIterator[tuple[str, ReviewStore]]:
    with opened(path) as store:
        app, _ = site(cases, store=store, options=options)
        server = HttpServer(app, host="127.0.0.1", port=0, tls={})
        await server.start()
        try:
            yield f"http://127.0.0.1:{server.port}", store
        finally:
            await server.stop(1)


@asynccontextmanager
async def _desk(browser: Browser, base: str, store: ReviewStore, name: str, **more: Any) -> AsyncIterator[Desk]:
    context: BrowserContext = await browser.new_context(**more)
    context.set_default_timeout(LONGEST_WAIT_MS)
    if name:
        await context.add_cookies([{"name": "groundwatch_author", "value": name, "url": base}])
    page = await context.new_page()
    desk = Desk(page, base, store)
    page.on("console", lambda message: desk.said.append(message.text))
    page.on("pageerror", lambda error: desk.said.append(str(error)))
    page.on("dialog", lambda dialog: desk.said.append(dialog.message))
    page.on(
        "request",
        lambda request: None if request.url.startswith((base, "data:")) else desk.foreign.append(request.url),
    )
    yield desk
    await context.close()


def _id(number: int) -> str:
    return f"case-{number:016x}"


async def test_ten_cases_are_labelled_by_keys_alone(browser: Browser, tmp_path: Path) -> None:
    async with (
        _served(queue_of(11), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "") as ana,
    ):
        await ana.go("/review")
        await ana.page.keyboard.press("Enter")
        await ana.page.wait_for_url("**/review/case?*")
        await ana.page.get_by_label("Your name, asked once").press_sequentially("ana")
        await ana.page.keyboard.press("Escape")
        for number in range(1, 11):
            await expect(ana.page.get_by_text(f"phone number {number}?")).to_be_visible()
            # Disagree with the first score, say what the second claim is, which passage is irrelevant, and save.
            await ana.page.keyboard.press("d")
            for _ in range(4):  # three scores more, then the first claim
                await ana.page.keyboard.press("j")
            await ana.page.keyboard.press("j")
            await ana.page.keyboard.press("2")
            if number == 1:
                await ana.page.keyboard.press("c")
                await ana.page.keyboard.type("jaja 12")  # keys in a field are text
                await ana.page.keyboard.press("Escape")
                await ana.page.keyboard.press("g")
            async with ana.page.expect_navigation():
                await ana.page.keyboard.press("Enter")
        await expect(ana.page.get_by_text("phone number 11?")).to_be_visible()
        assert ana.said == []
        assert ana.foreign == []
    for number in range(1, 11):
        case = _kept(tmp_path, _id(number))
        given = {(one.kind, one.metric, one.target): one for one in case.in_effect.labels}
        assert given[LabelKind.AGREE, "faithfulness", None].value == "disagree"
        assert given[LabelKind.CLAIM, "faithfulness", 1].value == "unsupported"
        assert all(one.author == "ana" and one.in_order for one in given.values())
    first = _kept(tmp_path, _id(1)).in_effect
    assert [one.value for one in first.of(LabelKind.COMMENT)] == ["jaja 12"]
    assert first.golden


def _kept(tmp_path: Path, case_id: str) -> Case:
    """As another process reads it."""
    with opened(tmp_path / "review.sqlite") as store:
        case = store.get(case_id)
    assert case is not None
    return case


async def test_undo_skip_and_what_one_said_before(browser: Browser, tmp_path: Path) -> None:
    async with (
        _served(queue_of(3), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana") as ana,
    ):
        await ana.go("/review/next?from=queue")
        await ana.page.keyboard.press("a")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Enter")
        assert ana.labels(_id(1)) == [(LabelKind.AGREE, "agree")]
        await expect(ana.page.get_by_role("status").first).to_contain_text("labelled")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("u")
        await expect(ana.page.get_by_text("phone number 1?")).to_be_visible()
        await expect(ana.page.get_by_role("status").first).to_contain_text("taken back")
        assert ana.labels(_id(1)) == []
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("x")
        assert ana.labels(_id(1)) == [(LabelKind.SKIP, None)]
        await expect(ana.page.get_by_text("phone number 2?")).to_be_visible()
        # Nothing chosen: nothing is saved, and one is told.
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Enter")
        await expect(ana.page.get_by_role("alert")).to_contain_text("Nothing was labelled")
        await ana.page.keyboard.press("d")
        await ana.page.keyboard.press("s")
        await ana.page.keyboard.type("0.25")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Enter")
        await ana.go(f"/review/case?id={_id(2)}")
        await expect(ana.page.get_by_label("disagree", exact=False).first).to_be_checked()
        await expect(ana.page.get_by_label("right score").first).to_have_value("0.25")


async def test_two_people_are_handed_different_cases_and_do_not_overwrite_each_other(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        _served(queue_of(4), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana") as ana,
        _desk(browser, base, store, "ben") as ben,
    ):
        await ana.go("/review/next?from=queue")
        await ben.go("/review/next?from=queue")
        await expect(ana.page.get_by_text("phone number 1?")).to_be_visible()
        await expect(ben.page.get_by_text("phone number 2?")).to_be_visible()
        # Ben opens Ana's case all the same, is told so, and saves first.
        await ben.go(f"/review/case?id={_id(1)}&from=queue")
        await expect(ben.page.get_by_text("Also looking at this case")).to_contain_text("ana")
        await ben.page.keyboard.press("a")
        async with ben.page.expect_navigation():
            await ben.page.keyboard.press("Enter")
        await ana.page.keyboard.press("d")
        await ana.page.keyboard.press("c")
        await ana.page.keyboard.type("water is excluded")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Control+Enter")
        told = ana.page.get_by_role("alert")
        await expect(told).to_contain_text("Somebody was there first")
        await expect(told).to_contain_text("ben")
        assert ana.labels(_id(1)) == [(LabelKind.AGREE, "agree")], "nothing of Ana's is saved yet"
        await expect(ana.page.get_by_label("Comment")).to_have_value("water is excluded")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Enter")
        case = store.get(_id(1))
        assert case is not None
        assert {(one.author, one.value) for one in case.in_effect.of(LabelKind.AGREE, metric="faithfulness")} == {
            ("ben", "agree"),
            ("ana", "disagree"),
        }


async def test_what_one_typed_into_a_page_that_went_stale_is_kept(browser: Browser, tmp_path: Path) -> None:
    async with (
        _served(queue_of(2), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana") as ana,
    ):
        await ana.go(f"/review/case?id={_id(1)}&from=queue")
        # As after a restart, which makes a new key: the page's token fits no more.
        await ana.page.evaluate("document.querySelector('#label [name=csrf]').value = 'of another process'")
        await ana.page.keyboard.press("d")
        await ana.page.get_by_label("Comment").fill("thought about for long")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Control+Enter")
        await expect(ana.page.get_by_role("alert")).to_contain_text("Nothing was saved")
        assert ana.labels(_id(1)) == []
        await expect(ana.page.get_by_label("Comment")).to_have_value("thought about for long")
        async with ana.page.expect_navigation():
            await ana.page.keyboard.press("Enter")
        assert len(ana.labels(_id(1))) == 2


async def test_single_keys_can_be_turned_off(browser: Browser, tmp_path: Path) -> None:
    async with (
        _served(queue_of(2), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana") as ana,
    ):
        await ana.go(f"/review/case?id={_id(1)}&from=queue")
        await ana.page.keyboard.press("?")
        await expect(ana.page.get_by_text("single keys are on")).to_be_visible()
        await ana.page.get_by_label("single keys are on").uncheck()
        await ana.page.reload()
        await ana.page.keyboard.press("d")
        await ana.page.keyboard.press("x")
        await expect(ana.page.locator("input[type=radio]:checked")).to_have_count(0)
        assert ana.labels(_id(1)) == []


async def test_search_and_filters_keep_their_state_in_the_address(browser: Browser, tmp_path: Path) -> None:
    picked = [warranty(n, reason=Reason.LOW_SCORE, low=n / 100) for n in range(20, 90)]
    async with (
        _served([*queue_of(3), *picked], tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana") as ana,
    ):
        page = ana.page
        await ana.go("/review/search")
        await page.keyboard.press("/")
        await page.keyboard.type('"phone number 2"')
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_have_text("1 case · work through them")
        await page.get_by_role("link", name="clear").click()
        await page.wait_for_url("**/review/search")
        await page.get_by_label("Kept for").select_option("low_score")
        await page.get_by_label("Metric").select_option("faithfulness")
        await page.get_by_label("Score from").fill("0.3")
        await page.get_by_label("to", exact=True).fill("0.39")
        await page.get_by_label("Order").select_option("lowest")
        await page.get_by_role("button", name="Search").click()
        await expect(page.get_by_role("status")).to_contain_text("10 cases")
        await page.reload()
        await expect(page.get_by_label("Score from")).to_have_value("0.3")
        await page.get_by_role("link", name="phone number 30?").click()
        await page.wait_for_url("**/review/case?*")
        await page.keyboard.press("a")
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        await expect(page.get_by_text("phone number 31?")).to_be_visible()
        case = store.get(_id(30))
        assert case is not None
        assert not case.labels[0].in_order, "a label from a search is none of the order drawn"
        await page.get_by_role("link", name="back to the list").click()
        await expect(page.get_by_role("status")).to_contain_text("10 cases")
        await ana.go("/review/search?reason=low_score&limit=50")
        await page.get_by_role("link", name="next page").click()
        await expect(page.locator(".cases tbody tr")).to_have_count(20)
        await ana.go("/review/search?score_min=0.2")
        await expect(page.get_by_role("alert")).to_contain_text("metric")


@pytest.mark.parametrize("mark", ["<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"])
async def test_hostile_content_is_inert(browser: Browser, tmp_path: Path, mark: str) -> None:
    evil = [hostile(f"{mark} javascript:alert(3) {'x' * 30_000}", number=1)]
    options = Options(trace_link="https://traces.example/{trace_id}")
    async with (
        _served(evil, tmp_path / "review.sqlite", options) as (base, store),
        _desk(browser, base, store, "ana") as ana,
    ):
        for path in (
            "/review",
            "/review/search",
            f"/review/case?id={_id(1)}",
            f"/review/case?id={_id(1)}&full=1",
            "/",
        ):
            await ana.go(path)
            assert await ana.page.evaluate("document.querySelectorAll('img, iframe, object, embed').length") == 0
            own = "status.js" if path == "/" else "review.js"
            assert await ana.page.evaluate("[...document.scripts].map(s => s.src).join()") in (
                "",
                f"{base}/static/{own}",
            )
            assert await ana.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
            assert "\u202e" not in await ana.page.content()
            addresses = await ana.page.evaluate("[...document.links].map(a => a.protocol)")
            assert set(addresses) <= {"http:", "https:"}
        await ana.go(f"/review/case?id={_id(1)}")
        await expect(ana.page.get_by_text("characters more").first).to_be_visible()
        trace = ana.page.get_by_role("link", name="open in the tracing backend")
        assert str(await trace.get_attribute("href")).startswith("https://traces.example/%3Cimg%20src")
        assert ana.said == []
        assert ana.foreign == []


async def test_claims_lead_to_the_passages_that_they_rest_on(browser: Browser, tmp_path: Path) -> None:
    async with (
        _served(queue_of(1), tmp_path / "review.sqlite", Options(read_only=True)) as (base, store),
        _desk(browser, base, store, "ana") as ana,
    ):
        await ana.go(f"/review/case?id={_id(1)}")
        wrong = ana.page.locator("mark.contradicted")
        await expect(wrong).to_have_text("Damage by water is covered")
        await ana.page.locator("#response + p").get_by_label("claim 2, contradicted").click()
        await expect(ana.page.locator("#claim-1")).to_be_in_viewport()
        await ana.page.locator("#claim-1").get_by_role("link", name="passage 1").click()
        assert ana.page.url.endswith("#passage-0")
        await expect(ana.page.get_by_role("button", name="Save")).to_have_count(0)
        await expect(ana.page.get_by_text("read only")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_all_text_stands_out_from_its_ground(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """WCAG's contrast of 4.5, for every piece of text, in both schemes."""
    async with (
        _served(queue_of(2), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana", color_scheme=scheme) as ana,
    ):
        for path in ("/review", "/review/search", f"/review/case?id={_id(1)}", "/"):
            await ana.go(path)
            low = await ana.page.evaluate(_CONTRAST)
            assert low == [], path
        ground = await ana.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (int(ground[4:].split(",")[0]) < 64) == (scheme == "dark")


async def test_everything_works_without_scripts(browser: Browser, tmp_path: Path) -> None:
    async with (
        _served(queue_of(2), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana", java_script_enabled=False) as ana,
    ):
        await ana.go("/review")
        await ana.page.get_by_role("link", name="Start with the next case").click()
        await ana.page.locator("[name='agree:faithfulness'][value=disagree]").check()
        await ana.page.get_by_label("Comment").fill("no")
        await ana.page.get_by_role("button", name="Save, next").click()
        await expect(ana.page.get_by_text("phone number 2?")).to_be_visible()
        assert (LabelKind.AGREE, "disagree") in ana.labels(_id(1))
        await ana.page.get_by_role("button", name="Undo").click()
        await expect(ana.page.get_by_text("phone number 1?")).to_be_visible()
        assert ana.labels(_id(1)) == []


async def test_axe_finds_nothing_that_keeps_people_out(browser: Browser, tmp_path: Path) -> None:
    """axe-core's rules, which know WCAG 2.2 A and AA as far as a machine can tell."""
    async with (
        _served(queue_of(2), tmp_path / "review.sqlite", Options()) as (base, store),
        _desk(browser, base, store, "ana", bypass_csp=True) as ana,
    ):
        store.label(_id(1), [Draft(LabelKind.COMMENT, "x")], author="ben", expected_revision=0)
        pages = ("/review", "/review/search", "/review/search?score_min=1", f"/review/case?id={_id(1)}&from=queue",
                 "/review/case?id=x", "/review/name", "/review/next?from=reason%3Dfeedback")  # fmt: skip
        for path in pages:
            await ana.go(path)
            found = await Axe().run(ana.page)
            assert found.violations_count == 0, f"{path}: {found.generate_report()}"


_CONTRAST = """() => {
  const parts = (color) => {
    const c = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    c.fillStyle = color; c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
  const linear = (v) => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const light = (rgb) => { const [r, g, b] = rgb.map((v) => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b; };
  const ground = (one) => { const layers = [];
    for (let at = one; at; at = at.parentElement) layers.push(parts(getComputedStyle(at).backgroundColor));
    let found = [255, 255, 255];
    for (const [r, g, b, a] of layers.reverse())
      found = [r, g, b].map((v, i) => v * a / 255 + found[i] * (1 - a / 255));
    return found; };
  const low = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const one = walk.currentNode.parentElement;
    if (!walk.currentNode.textContent.trim() || !one.checkVisibility() || one.closest(".skip")) continue;
    const a = light(parts(getComputedStyle(one).color).slice(0, 3)), b = light(ground(one));
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) low.push(`${walk.currentNode.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
  }
  return low;
}"""

"""The status page in a real browser: it renews itself and leaves the reader where he is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from collector.web.options import Options
from collector.web.server import HttpServer
from collector.web.status import Status
from tests.support.review_pages import opened, site
from tests.support.status_page import busy

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Shown:
    """A reader's page, what it is told next, and what the browser complained of."""

    page: Page
    status: Status
    server: HttpServer
    said: list[str] = field(default_factory=list)


@asynccontextmanager
async def _shown(browser: Browser, path: Path, **more: Any) -> AsyncIterator[Shown]:
    with opened(path / "review.sqlite") as store:
        shown: Shown
        app, _ = site(store=store, options=Options(refresh_seconds=1), status=lambda: shown.status)
        server = HttpServer(app, host="127.0.0.1", port=0, tls={})
        await server.start()
        context = await browser.new_context(**more)
        try:
            page = await context.new_page()
            shown = Shown(page, busy(), server)
            page.on("console", lambda message: shown.said.append(message.text))
            page.on("pageerror", lambda error: shown.said.append(str(error)))
            await page.goto(f"http://127.0.0.1:{server.port}/")
            yield shown
        finally:
            await context.close()
            await server.stop(1)


async def test_it_renews_in_place_and_focus_scroll_and_marks_stay(browser: Browser, tmp_path: Path) -> None:
    async with _shown(browser, tmp_path, viewport={"width": 900, "height": 300}) as shown:
        last = shown.status.worst[-1]
        link = shown.page.get_by_role("link", name=last.trace_id)
        await link.focus()
        scrolled = await shown.page.evaluate("scrollY")
        assert scrolled > 0
        await shown.page.evaluate("window.same = document.querySelector('#worst')")
        first, *others = shown.status.worst
        newer = replace(first, trace_id="cd" * 16, interaction_id="newer")
        shown.status = replace(
            shown.status, uptime_seconds=7200, reasons={}, worst=[newer, *reversed(others)], notes=["a new note"]
        )
        await expect(shown.page.get_by_text("up 120 min")).to_be_visible()
        await expect(shown.page.get_by_text("a new note")).to_be_visible()
        await expect(shown.page.get_by_role("link", name=first.trace_id)).to_have_count(0)
        await expect(shown.page.get_by_text("Not ready because")).to_have_count(0)
        await expect(link).to_be_focused()
        assert await shown.page.evaluate("window.same === document.querySelector('#worst')")
        shown_ids = await shown.page.locator("#worst ~ table tbody a code").all_inner_texts()
        assert shown_ids == [one.trace_id for one in shown.status.worst]
        whole = await shown.page.locator("#main").inner_html()
        await shown.page.reload()
        assert await shown.page.locator("#main").inner_html() == whole, "as if it had been loaded anew"
        assert shown.said == []


async def test_it_can_be_stopped_and_renewed_by_hand(browser: Browser, tmp_path: Path) -> None:
    async with _shown(browser, tmp_path) as shown:
        await shown.page.get_by_role("button", name="stop renewing").click()
        asked: list[str] = []
        shown.page.on("request", lambda request: asked.append(request.url))
        shown.status = replace(shown.status, judge="another-judge")
        await shown.page.wait_for_timeout(2500)
        assert asked == []
        await shown.page.get_by_role("link", name="refresh").click()
        await expect(shown.page.get_by_text("judge: another-judge")).to_be_visible()
        await shown.page.reload()
        await expect(shown.page.get_by_role("button", name="renew by itself")).to_be_visible()
        await shown.page.get_by_role("button", name="renew by itself").click()
        shown.status = replace(shown.status, judge="a-third")
        await expect(shown.page.get_by_text("judge: a-third")).to_be_visible()
        assert shown.said == []


async def test_a_groundwatch_that_is_gone_is_said_and_what_was_shown_stays(
    browser: Browser, tmp_path: Path
) -> None:
    async with _shown(browser, tmp_path) as shown:
        await shown.server.stop(0)
        await expect(shown.page.get_by_role("status")).to_have_text(
            "not renewed: it does not answer; what you see is older"
        )
        await expect(shown.page.get_by_role("heading", name="Lowest scores of the last hour")).to_be_visible()


async def test_without_scripts_a_link_renews_it(browser: Browser, tmp_path: Path) -> None:
    async with _shown(browser, tmp_path, java_script_enabled=False) as shown:
        await expect(shown.page.get_by_role("button")).to_have_count(0)
        shown.status = replace(shown.status, judge="another-judge")
        await shown.page.get_by_role("link", name="refresh").click()
        await expect(shown.page.get_by_text("judge: another-judge")).to_be_visible()


@pytest.mark.parametrize("width", [390, 768, 1200, 1600])
async def test_no_width_makes_the_page_scroll_sideways(browser: Browser, tmp_path: Path, width: int) -> None:
    async with _shown(browser, tmp_path, viewport={"width": width, "height": 900}) as shown:
        over = await shown.page.evaluate(_TOO_WIDE)
        assert over == []


async def test_axe_finds_nothing_that_keeps_people_out(browser: Browser, tmp_path: Path) -> None:
    async with _shown(browser, tmp_path, bypass_csp=True) as shown:
        found = await Axe().run(shown.page)
        assert found.violations_count == 0, found.generate_report()


_TOO_WIDE = """() => [document.documentElement, ...document.querySelectorAll("table")]
  .filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => `${one.closest("section")?.querySelector("h2").textContent ?? one.nodeName}: ${one.scrollWidth}`)
"""

"""A real browser for the tests of pages, where there is one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.conftest import Program

LONGEST_WAIT_MS = 15_000  # for a page on a busy machine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(program: Program) -> AsyncIterator[Browser]:
    path = program("chromium")
    expect.set_options(timeout=LONGEST_WAIT_MS)
    async with async_playwright() as playwright:
        # Without its sandbox, which needs rights that containers and root do not have: it sees our own pages only.
        made = await playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield made
        await made.close()

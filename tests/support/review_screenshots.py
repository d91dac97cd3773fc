"""The pictures of the review pages in the documentation: `python -m tests.support.review_screenshots DIRECTORY`."""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from playwright.async_api import async_playwright

from collector.review.case import Case, Pick, Reason
from collector.review.labels import Draft, LabelKind
from collector.web.options import Options
from collector.web.server import HttpServer
from tests.support.review_pages import NOON, queue_of, site, warranty

_QUESTIONS = (
    "Is water damage covered, and how long do I have to return the phone?",
    "How do I reset the router to its factory settings?",
    "Which documents do I need to claim a refund?",
    "Does the extended plan cover a cracked screen?",
    "Can I change the delivery address after ordering?",
    "What is the difference between the Basic and the Plus plan?",
)
_SHOTS = (
    ("review-queue", "/review", "light", 760),
    ("review-case", "/review/case?id=case-0000000000000001&from=queue", "light", 840),
    ("review-case-dark", "/review/case?id=case-0000000000000001&from=queue", "dark", 840),
    ("review-search-dark", "/review/search?metric=faithfulness&score_max=0.5&sort=lowest", "dark", 760),
)


def _cases() -> list[Case]:
    drawn = queue_of(len(_QUESTIONS))
    picked = [warranty(n, reason=Reason.LOW_SCORE, low=n / 100) for n in range(20, 26)]
    noisy = [warranty(n, reason=Reason.DISAGREEMENT, low=0.7) for n in range(30, 33)]
    asked = []
    for number, case in enumerate([*drawn, *picked, *noisy]):
        question = _QUESTIONS[number % len(_QUESTIONS)]
        asked.append(replace(case, interaction=replace(case.interaction, question=question)))
    asked[1] = replace(asked[1], picks=(*asked[1].picks, Pick(Reason.FEEDBACK, NOON)))
    return asked


async def _take(directory: Path) -> None:
    app, store = site(_cases(), options=Options(trace_link="https://jaeger.example/trace/{trace_id}"))
    for number in (20, 21):
        labels = [Draft(LabelKind.AGREE, "agree", "faithfulness")]
        store.label(f"case-{number:016x}", labels, author="ana", expected_revision=0)
    server = HttpServer(app, host="127.0.0.1", port=0, tls={})
    await server.start()
    base = f"http://127.0.0.1:{server.port}"
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        for name, path, scheme, height in _SHOTS:
            context = await browser.new_context(
                color_scheme="dark" if scheme == "dark" else "light", viewport={"width": 1180, "height": height}
            )
            await context.add_cookies([{"name": "groundwatch_author", "value": "ana", "url": base}])
            page = await context.new_page()
            await page.goto(base + path)
            await page.screenshot(path=directory / f"{name}.png")
            await context.close()
        await browser.close()
    await server.stop(1)


if __name__ == "__main__":
    asyncio.run(_take(Path(sys.argv[1])))

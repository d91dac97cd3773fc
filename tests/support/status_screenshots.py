"""The pictures of the status page in the documentation: `python -m tests.support.status_screenshots DIRECTORY`.

The demo's application and its stub model, a scripted judge, and the installed sidecar between them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from collector.commands.demo import OK_RELEASE
from collector.demo.processes import start_application, start_model
from tests.support.judge import JudgeServer
from tests.support.sidecar import Sidecar, quick_config

_INTERACTIONS = 280
_WIDTH, _HEIGHT = 1385, 1250


def _shoot(address: str, directory: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        for name, scheme in (("status", "light"), ("status-dark", "dark")):
            context = browser.new_context(
                color_scheme="dark" if scheme == "dark" else "light",
                viewport={"width": _WIDTH, "height": _HEIGHT},
            )
            page = context.new_page()
            page.goto(address)
            page.screenshot(path=directory / f"{name}.png")
            context.close()
        browser.close()


def main(directory: Path) -> None:
    with JudgeServer() as judge, tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        sidecar = Sidecar(
            at,
            quick_config(
                judge=judge.section(budget={"day": {"calls": 1_000_000}}),
                sampling={"rate": 0.5, "budget": {"calls_per_day": 1_000_000}},
            ),
        )
        model = start_model(at / "model.log", seed=7, max_seconds=300)
        try:
            sidecar.ready()
            application = start_application(
                at / "application.log",
                model_url=str(model.first_line(20)["listening"]),
                model=OK_RELEASE[1],
                release=OK_RELEASE[0],
                otlp_url=sidecar.http,
                rate=6,
                seconds=240,
                seed=7,
            )
            try:
                sidecar.wait_for_interactions(_INTERACTIONS, seconds=200)
                _shoot(sidecar.http, directory)
            finally:
                application.stop()
        finally:
            model.stop()
            sidecar.end()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

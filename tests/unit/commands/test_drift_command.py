"""`groundwatch drift` against a real port."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from starlette.applications import Starlette

from collector.cli import main
from collector.web.access import Guard
from collector.web.drift import routes
from collector.web.server import HttpServer
from tests.unit.collector.test_web_drift import drifted
from tests.unit.estimates.detect_simulator import World

TOKEN = "sesame"


@pytest.fixture
async def served() -> AsyncIterator[tuple[World, str]]:
    world = drifted()

    def token() -> str:
        return TOKEN

    app = Guard(Starlette(routes=routes(world.detection)), token=token, open_without_token=True)
    server = HttpServer(app, host="127.0.0.1", port=0, tls={})
    await server.start()
    yield world, f"http://127.0.0.1:{server.port}"
    await server.stop(1)


async def drift(*arguments: str) -> int:
    return await asyncio.to_thread(main, ["drift", *arguments])


@pytest.fixture
def known_token(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PAGE_TOKEN", TOKEN)
    return ["--token-env", "PAGE_TOKEN"]


async def test_it_lists_and_acts(
    served: tuple[World, str], known_token: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    world, url = served
    at = ["--url", url, *known_token]
    assert await drift(*at) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["SERIES", "STATE", "LEVEL", "EVIDENCE", "ALARMS"]
    assert lines[1].split()[:5] == ["faithfulness/service=shop", "alarm", ">=", "0.800", "set"]
    assert "since 2023-11-14 22:15 UTC" in lines[1]
    assert lines[2].split()[:2] == ["faithfulness", "learning"]
    assert "baseline 0%" in lines[2]
    assert await drift("ack", "faithfulness/service=shop", *at) == 0
    assert capsys.readouterr().out.startswith("faithfulness/service=shop: acknowledged")
    assert world.of("faithfulness/service=shop").state == "watching"
    assert await drift("list", "--json", *at) == 0
    assert json.loads(capsys.readouterr().out)["series"][0]["series"] == "faithfulness"
    assert await drift(*at) == 0
    assert "acknowledged 2023-11-14 22:15 UTC" in capsys.readouterr().out
    for action in ("reset", "learn"):
        assert await drift(action, "faithfulness/service=shop", *at) == 0
    assert world.of("faithfulness/service=shop").state == "learning"


async def test_each_replica_is_told(
    served: tuple[World, str], known_token: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    world, url = served
    assert await drift("ack", "faithfulness", "--url", url, "--url", url, *known_token) == 0
    assert capsys.readouterr().out.count(url) == 2
    assert len(world.told("detector_changed_by_hand")) == 2


async def test_what_is_wrong_is_said_with_the_cure(
    served: tuple[World, str], known_token: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, url = served
    assert await drift("ack", "nonsense", "--url", url, *known_token) == 1
    assert "no series 'nonsense' is watched; there are: faithfulness/service=shop" in capsys.readouterr().err
    assert await drift("--url", url) == 1
    assert "answered 401" in capsys.readouterr().err
    assert await drift("--url", url, "--token-env", "NOT_SET_AT_ALL") == 2
    assert "'NOT_SET_AT_ALL' is not set" in capsys.readouterr().err
    assert await drift("ack") == 2
    assert "which series?" in capsys.readouterr().err
    assert await drift("list", "faithfulness") == 2
    assert "name no series to list" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert await drift("--url", f"http://127.0.0.1:{port}") == 1
    assert "is groundwatch running there?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("detection", "state", "code", "line"),
    [
        (
            "{}",
            "",
            0,
            "watched for getting worse after 7 days of baseline; without process.state_dir each restart",
        ),
        (
            "{}",
            "process: {state_dir: state}\n",
            0,
            "noncommittal: watched for getting worse after 7 days of baseline\n",
        ),
        ("{metrics: [nonsense]}", "", 1, "FAIL  estimates.detection.metrics: no scorer gives the judged metric"),
        (
            "{metrics: [faithfulness_second]}",
            "",
            1,
            "FAIL  estimates.detection.metrics: no scorer gives the judged",
        ),
    ],
)
def test_check_says_what_is_watched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], detection: str, state: str, code: int, line: str
) -> None:
    path = tmp_path / "groundwatch.yaml"
    path.write_text(
        "judge: {base_url: 'http://127.0.0.1:9/v1', model: m, shadow: {name: second, model: n}}\n"
        f"estimates: {{detection: {detection}}}\n{state}"
    )
    assert main(["check", "--offline", "-c", str(path)]) == code
    assert line in capsys.readouterr().out

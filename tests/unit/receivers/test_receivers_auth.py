"""Bearer tokens."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from pydantic import ValidationError

from collector.pipeline.clock import ManualClock
from collector.receivers.auth import Authenticator, NoTokens, providers, token_hash
from collector.receivers.options import TokenSource


def test_a_source_is_a_file_or_a_variable() -> None:
    for values in ({}, {"file": "a", "env": "B"}):
        with pytest.raises(ValidationError, match="exactly one"):
            TokenSource.model_validate(values)


def test_sources_without_tokens_are_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("# nothing\n\n")
    for source, named in (
        (TokenSource(env="TOKEN"), "TOKEN"),
        (TokenSource(file=empty), "holds no token"),
        (TokenSource(file=tmp_path / "missing"), "missing"),
    ):
        with pytest.raises(NoTokens, match=named):
            providers([source], environ={"TOKEN": " "}, clock=ManualClock())


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (b"Bearer secret", True),
        (b"bearer  secret ", True),
        (b"Bearer Secret", False),
        (b"Bearer", False),
        (b"Bearer ", False),
        (b"secret", False),
        (b"Basic secret", False),
        (b"Bearer secret" + b" " * 20_000, False),
        (b"Bearer \xff\xfe", False),
        (None, False),
    ],
)
def test_headers(header: bytes | None, accepted: bool) -> None:
    auth = Authenticator([lambda: (token_hash("other"), token_hash("secret"))])
    assert auth.accepts(header) is accepted


def test_a_changed_file_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "tokens"
    path.write_text("old\n")
    clock = ManualClock()
    auth = Authenticator(providers([TokenSource(file=path)], environ={}, clock=clock))
    replacement = tmp_path / "new"
    replacement.write_text("new\n")
    replacement.replace(path)
    assert auth.accepts(b"Bearer old")  # looked at once a second at most
    clock.advance(1)
    assert auth.accepts(b"Bearer new")
    assert not auth.accepts(b"Bearer old")
    with caplog.at_level(logging.WARNING):
        path.unlink()
        for _ in range(3):
            clock.advance(1)
            assert auth.accepts(b"Bearer new")
        assert len(caplog.records) == 1
        path.write_text("")
        os.utime(path, ns=(1, 1))
        clock.advance(1)
        assert not auth.accepts(b"Bearer new")
    assert "new" not in caplog.text.replace(str(path), "")

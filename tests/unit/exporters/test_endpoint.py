"""Our own receiver is never the target of our events."""

from __future__ import annotations

import socket

import pytest

from collector.exporters.endpoint import OwnEndpointError, refuse_own


@pytest.mark.parametrize(
    ("endpoint", "own"),
    [
        ("http://127.0.0.1:4317", ("127.0.0.1", 4317)),
        ("http://localhost:4317", ("127.0.0.1", 4317)),
        ("http://LOCALHOST:4317/", ("127.0.0.1", 4317)),
        ("http://[::1]:4318/v1/logs", ("localhost", 4318)),
        ("http://127.0.0.2:4317", ("0.0.0.0", 4317)),
        ("http://0.0.0.0:4317", ("", 4317)),
        ("http://user:secret@localhost:4317", ("127.0.0.1", 4317)),
        ("https://localhost", ("127.0.0.1", 443)),
    ],
)
def test_refuses_ourselves_under_every_name(endpoint: str, own: tuple[str, int]) -> None:
    with pytest.raises(OwnEndpointError, match=r"export\.otlp\.endpoint: .* own receiver"):
        refuse_own(endpoint, [("127.0.0.1", 1), own])


def test_refuses_this_machines_name_when_listening_on_every_address() -> None:
    with pytest.raises(OwnEndpointError):
        refuse_own(f"http://{socket.gethostname()}:4317", [("0.0.0.0", 4317)])


@pytest.mark.parametrize(
    ("endpoint", "own"),
    [
        ("http://localhost:4319", ("127.0.0.1", 4317)),
        ("http://192.0.2.7:4317", ("127.0.0.1", 4317)),
        ("http://192.0.2.7:4317", ("0.0.0.0", 4317)),
        ("http://collector.invalid:4317", ("0.0.0.0", 4317)),
    ],
)
def test_lets_others_be(endpoint: str, own: tuple[str, int]) -> None:
    refuse_own(endpoint, [own])

"""Is an endpoint our own receiver? Events sent there would be evaluated in turn."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

_DEFAULT_PORT = {"http": 80, "https": 443}
_EVERY_ADDRESS = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  # compared with, never bound


class OwnEndpointError(ValueError):
    """The configured endpoint is a receiver of this process."""


def refuse_own(endpoint: str, own: Iterable[tuple[str, int]]) -> None:
    """Raise OwnEndpointError where `endpoint` (a URL) leads to one of our listening (host, port) pairs.

    Host names are resolved, so that localhost, 127.0.0.1, ::1, the host's own name and, for a listener on every
    address, any address of this machine are recognised. A name that does not resolve is not ours.
    """
    parts = urlsplit(endpoint)
    port = parts.port or _DEFAULT_PORT.get(parts.scheme, 0)
    listeners = [host for host, listening in own if listening == port]
    if not listeners:
        return
    targets = _addresses(parts.hostname or "")
    for host in listeners:
        if host in _EVERY_ADDRESS:
            ours = any(_is_local(address) for address in targets)
        else:
            mine = _addresses(host)
            loopback = any(map(_is_loopback, mine)) and any(map(_is_loopback, targets))
            ours = loopback or bool(targets & mine)
        if ours:
            raise OwnEndpointError(
                f"export.otlp.endpoint: {parts.hostname}:{port} is groundwatch's own receiver; "
                "point it at the collector or backend that shall store the evaluation events"
            )


def _addresses(host: str) -> frozenset[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return frozenset({host})
    return frozenset(str(address[0]) for *_, address in found)


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "::ffff:127.")) or address in ("::1", "localhost")


def _is_local(address: str) -> bool:
    """A datagram socket can be bound to an address of this machine and to no other; nothing is sent."""
    if address in _EVERY_ADDRESS or _is_loopback(address):
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True

"""Bearer tokens: where they come from, and whether a header holds one of them.

Tokens are kept as hashes only, are compared in constant time, and are written nowhere.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from collector.pipeline.clock import Clock
from collector.receivers.options import TokenSource

Provider = Callable[[], Sequence[bytes]]
"""Gives the hashes (see `token_hash`) of the tokens that are valid now. Cheap: it is asked on every request."""

_RECHECK_SECONDS = 1.0
_MAX_HEADER_BYTES = 16 * 1024


class NoTokens(ValueError):
    """A configured source of tokens holds none."""


def token_hash(token: str | bytes) -> bytes:
    """SHA-256: equal lengths to compare, and no token in memory."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).digest()


class FileTokens:
    """The tokens of a file, read again (looked at once a second at most) when the file changed.

    A file that can not be read any more leaves the last tokens valid, with a warning, for the time of a
    replacement; a file that is there but empty revokes all.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        """Raises `NoTokens`."""
        self._path = path
        self._clock = clock
        self._log = logging.getLogger(__name__)
        self._unreadable = False
        try:
            self._version = self._stat()
            self._hashes = self._read()
        except OSError as error:
            raise NoTokens(f"token file {path}: {error.strerror or error}; give a readable file") from error
        if not self._hashes:
            raise NoTokens(f"token file {path} holds no token; write one a line")
        self._checked = clock.monotonic()

    def __call__(self) -> Sequence[bytes]:
        now = self._clock.monotonic()
        if now - self._checked >= _RECHECK_SECONDS:
            self._checked = now
            self._refresh()
        return self._hashes

    def _refresh(self) -> None:
        try:
            version = self._stat()
            if version != self._version:
                self._hashes = self._read()
                self._version = version
                if not self._hashes:
                    self._log.warning("token file %s is empty now: every request is refused", self._path)
        except OSError as error:
            if not self._unreadable:
                self._log.warning(
                    "token file %s can not be read, its last tokens stay valid: %s", self._path, error
                )
            self._unreadable = True
        else:
            self._unreadable = False

    def _stat(self) -> tuple[int, int, int]:
        status = self._path.stat()
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _read(self) -> tuple[bytes, ...]:
        lines = (line.strip() for line in self._path.read_bytes().splitlines())
        return tuple(token_hash(line) for line in lines if line and not line.startswith(b"#"))


class _Fixed:
    def __init__(self, hashes: Sequence[bytes]) -> None:
        self._hashes = hashes

    def __call__(self) -> Sequence[bytes]:
        return self._hashes


def providers(sources: Iterable[TokenSource], *, environ: Mapping[str, str], clock: Clock) -> list[Provider]:
    """One provider for each configured source. Raises `NoTokens`."""
    found: list[Provider] = []
    for source in sources:
        if source.file is not None:
            found.append(FileTokens(source.file, clock))
        elif source.env is not None:
            token = environ.get(source.env, "").strip()
            if not token:
                raise NoTokens(f"environment variable {source.env} holds no token; set it, or name another")
            found.append(_Fixed((token_hash(token),)))
    return found


class Authenticator:
    """Says whether an Authorization value is `Bearer TOKEN` with a valid token."""

    def __init__(self, token_providers: Sequence[Provider]) -> None:
        self._providers = tuple(token_providers)

    def accepts(self, authorization: bytes | None) -> bool:
        """Every valid token is compared, always, each in constant time."""
        if authorization is None or len(authorization) > _MAX_HEADER_BYTES:
            return False
        scheme, _, token = authorization.partition(b" ")
        if scheme.lower() != b"bearer":
            return False
        presented = token_hash(token.strip())
        valid = False
        for provider in self._providers:
            for expected in provider():
                valid |= hmac.compare_digest(presented, expected)
        return valid

"""Names and passwords for HTTP Basic: lines of salted scrypt hashes.

python -m collector.web.passwords NAME      asks for a password and prints the line for `web.users_file`
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import getpass
import hashlib
import hmac
import secrets
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

_N, _R, _P = 2**14, 8, 1  # 16 MiB and some 50 ms for each try (RFC 7914 names these for interactive logins)
_REMEMBERED = 256
_MAX_WAITING = 16
MAX_PASSWORD_BYTES = 1024

Lines = Callable[[], Mapping[str, str]]
"""Gives name -> hash as it stands now."""


class Busy(Exception):
    """Too many passwords wait to be checked; try again."""


def line(name: str, password: str) -> str:
    """The line of a person: `name:scrypt:salt:hash`. Raises ValueError for a name that can not stand there, and for no
    password, with which everybody would get in."""
    if not name or ":" in name or name != name.strip() or not name.isprintable():
        raise ValueError(f"{name!r} can not be a name: it must be printable, without colons and spaces around it")
    if not password:
        raise ValueError("a password is needed: type it, or give it as a line on standard input")
    salt = secrets.token_bytes(16)
    return f"{name}:scrypt:{_text(salt)}:{_text(_hash(password.encode(), salt))}"


def read_lines(text: str) -> dict[str, str]:
    """Name -> hash; empty lines and those that begin with # are left out, and so are lines that are none of ours:
    nobody can log in by them."""
    found = {}
    for one in text.splitlines():
        name, _, rest = one.strip().partition(":")
        if name and rest.startswith("scrypt:") and not name.startswith("#"):
            found[name] = rest
    return found


def file_or_env_users(path: Path | None, name: str | None, environment: Mapping[str, str]) -> Lines | None:
    """The people of a file, read anew when it changes, or of an environment variable; None where none is
    configured. A file that can not be read lets nobody in."""
    if path is not None:
        held: tuple[tuple[int, int], dict[str, str]] | None = None

        def from_file() -> Mapping[str, str]:
            nonlocal held
            try:
                stat = path.stat()
                mark = (stat.st_mtime_ns, stat.st_size)
                if held is None or held[0] != mark:
                    held = mark, read_lines(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError):
                return {}
            return held[1]

        return from_file
    if name is not None:
        from_environment = read_lines(environment.get(name, ""))
        return lambda: from_environment
    return None


class Passwords:
    """Checks passwords. One check at a time, in a thread, so that guessing can not take the machine; what was right
    is remembered under a key of this process until its line changes. An unknown name takes as long as a known one."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._key = secrets.token_bytes(32)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._one = asyncio.Lock()  # protects the machine: each check takes a core and 16 MiB
        self._waiting = 0
        self._nobody = line("nobody", secrets.token_urlsafe()).partition(":")[2]

    async def right(self, name: str, password: str) -> bool:
        """Raises Busy when too many wait."""
        given = password.encode("utf-8", "replace")
        kept = self._lines().get(name)
        if len(given) > MAX_PASSWORD_BYTES:
            return False
        mark = hashlib.blake2b(
            b"\0".join((name.encode("utf-8", "replace"), given, (kept or "").encode())), key=self._key
        ).digest()
        if kept is not None and mark in self._right:
            self._right.move_to_end(mark)
            return True
        if self._waiting >= _MAX_WAITING:
            raise Busy
        self._waiting += 1
        try:
            async with self._one:
                fits = await asyncio.to_thread(_fits, given, kept or self._nobody)
        finally:
            self._waiting -= 1
        if kept is None or not fits:
            return False
        self._right[mark] = None
        if len(self._right) > _REMEMBERED:
            self._right.popitem(last=False)
        return True


def _fits(password: bytes, kept: str) -> bool:
    try:
        _, salt, wanted = kept.split(":")
        return hmac.compare_digest(_hash(password, _bytes(salt)), _bytes(wanted))
    except (ValueError, binascii.Error):
        return False


def _hash(password: bytes, salt: bytes) -> bytes:
    return hashlib.scrypt(password, salt=salt, n=_N, r=_R, p=_P, maxmem=64 * 2**20, dklen=32)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


def main(argv: list[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("usage: python -m collector.web.passwords NAME\n")
        return 2
    try:
        password = getpass.getpass() if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
        sys.stdout.write(line(argv[0], password) + "\n")
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

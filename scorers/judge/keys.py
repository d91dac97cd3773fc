"""API keys: read from where the user keeps them, refreshed when they age or are rejected, never logged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from scorers.errors import BadScorerOptions, JudgeAuth
from scorers.judge.options import KeyOptions

_COMMAND_SECONDS = 30


class KeyProvider(Protocol):
    async def key(self, *, rejected: str | None = None) -> str | None:
        """The key, or None where none is needed.

        `rejected` is a key that the endpoint just refused: a provider that can get another one does. Raises
        `JudgeAuth` where the source can not be read.
        """
        ...


class FixedKey:
    """A key that does not change."""

    def __init__(self, key: str | None) -> None:
        self._key = key

    async def key(self, *, rejected: str | None = None) -> str | None:
        del rejected
        return self._key


class RefreshedKey:
    """A key from a file or a command, read again after `refresh_seconds` and when it was rejected.

    One reading at a time: calls that find the key rejected wait for the same new one.
    """

    def __init__(self, options: KeyOptions, *, monotonic: Callable[[], float]) -> None:
        self._options = options
        self._monotonic = monotonic
        self._key: str | None = None
        self._expires = 0.0
        self._lock = asyncio.Lock()  # protects _key and _expires across the await of a reading

    async def key(self, *, rejected: str | None = None) -> str | None:
        async with self._lock:
            stale = self._key is None or self._monotonic() >= self._expires
            if stale or (rejected is not None and rejected == self._key):
                self._key = await self._read()
                self._expires = self._monotonic() + self._options.refresh_seconds
            return self._key

    async def _read(self) -> str:
        if self._options.file is not None:
            return await asyncio.to_thread(_read_file, self._options.file)
        assert self._options.command is not None
        return await _run(self._options.command)


def _usable(key: str, source: str) -> str:
    """A key that can stand in a header; what is wrong with it is said without showing it."""
    if not key:
        raise JudgeAuth(f"{source} is empty")
    if not key.isascii() or not key.isprintable():
        raise JudgeAuth(f"{source} holds characters that can not stand in a header")
    return key


def _read_file(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise JudgeAuth(f"the key file {str(path)!r} can not be read ({type(error).__name__})") from None
    return _usable(key, f"the key file {str(path)!r}")


async def _run(command: tuple[str, ...]) -> str:
    name = command[0]
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise JudgeAuth(f"the key command {name!r} can not be started ({type(error).__name__})") from None
    try:
        async with asyncio.timeout(_COMMAND_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        raise JudgeAuth(f"the key command {name!r} took longer than {_COMMAND_SECONDS} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    key = output.decode("utf-8", "replace").strip()
    if process.returncode:
        raise JudgeAuth(f"the key command {name!r} ended with code {process.returncode}")
    return _usable(key, f"the output of the key command {name!r}")


def key_provider(
    options: KeyOptions, *, environ: Mapping[str, str], monotonic: Callable[[], float]
) -> KeyProvider:
    """The provider that `options` names. `environ` is the composition root's.

    Raises `BadScorerOptions` where a named environment variable is not set; files and commands are tried at the
    first call, since a token may come later.
    """
    if options.env is not None:
        key = environ.get(options.env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            raise BadScorerOptions(
                f"api_key.env is {options.env!r}, but that variable is not set, empty, or no header can hold it"
            )
        return FixedKey(key)
    if options.file is not None or options.command is not None:
        return RefreshedKey(options, monotonic=monotonic)
    return FixedKey(None)

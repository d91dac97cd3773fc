"""The verdict cache: labels under a keyed hash, so that nothing of a trace can be read from it."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from scorers.judge.question import Labelled


class VerdictCache:
    """Labels by content, at most `max_entries`, each for at most `ttl_seconds`; the least used leaves first.

    `secret` keys the hash: without it, nobody can test whether a text was judged. Reasons are not kept.
    """

    def __init__(
        self, *, secret: bytes, max_entries: int, ttl_seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self._secret = secret[:64]
        self._max_entries = max_entries
        self._ttl_seconds = ttl_seconds
        self._monotonic = monotonic
        self._entries: OrderedDict[bytes, tuple[float, str, tuple[int, ...]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def key(self, *parts: str) -> bytes:
        """A key over parts whose borders count: ("ab", "c") and ("a", "bc") differ."""
        raw = "".join(f"{len(part)}:{part}" for part in parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(raw, key=self._secret, digest_size=16).digest()

    def get(self, key: bytes) -> Labelled | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        expires, label, passages = entry
        if self._monotonic() >= expires:
            del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return Labelled(label, passages=passages, flags=("cached",))

    def put(self, key: bytes, labelled: Labelled) -> None:
        if self._max_entries <= 0:
            return
        self._entries[key] = (self._monotonic() + self._ttl_seconds, labelled.label, labelled.passages)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

"""Choosing by a keyed hash: the same on every replica and at every start."""

from __future__ import annotations

from hashlib import blake2b


def place_in_unit(salt: str, name: str) -> float:
    """A number in [0, 1), uniform over names and independent over salts; below p it chooses with probability p."""
    digest = blake2b(name.encode("utf-8", "surrogatepass"), key=salt.encode()[:64], digest_size=8).digest()
    return (int.from_bytes(digest, "big") >> 11) / 2**53

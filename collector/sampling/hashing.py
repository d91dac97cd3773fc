"""One uniform number per interaction and purpose.

u(seed, purpose, id) = floor(h / 2^11) / 2^53, with h the 8 bytes of BLAKE2b-64 of the id (UTF-8), big-endian, keyed
with BLAKE2b-256 of "groundwatch" 0x00 seed 0x00 purpose (UTF-8). BLAKE2: RFC 7693. Numbers of different purposes are
independent, so probabilities multiply; replicas with one seed agree without talking. The bits of trace ids are
never used as they are: upstream samplers decide by those.
"""

from __future__ import annotations

from hashlib import blake2b

_BITS = 53


class Uniform:
    """Gives each id its number in [0, 1) for one seed and purpose. Immutable."""

    __slots__ = ("_keyed",)

    def __init__(self, seed: str, purpose: str) -> None:
        material = b"\x00".join((b"groundwatch", seed.encode(), purpose.encode()))
        key = blake2b(material, digest_size=32).digest()
        self._keyed = blake2b(key=key, digest_size=8)

    def __call__(self, interaction_id: str) -> float:
        state = self._keyed.copy()
        state.update(interaction_id.encode("utf-8", "surrogatepass"))
        return (int.from_bytes(state.digest(), "big") >> (64 - _BITS)) / (1 << _BITS)

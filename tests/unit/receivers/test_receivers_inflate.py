"""Decompression that stops at a limit."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest

from collector.receivers.inflate import Corrupt, Inflater, TooLarge, compression, inflate

TEXT = b"some text " * 1000


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("gzip", gzip.compress(TEXT)),
        ("gzip", gzip.compress(TEXT[:10]) + gzip.compress(TEXT[10:])),
        ("gzip", gzip.compress(TEXT) + b"\0" * 50),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT, wbits=-15)),
    ],
)
def test_whole_and_byte_by_byte(encoding: str, data: bytes) -> None:
    assert inflate(data, encoding, len(TEXT)) == TEXT
    inflater = Inflater(encoding, len(TEXT))
    for start in range(len(data)):
        inflater.feed(data[start : start + 1])
    assert inflater.finish() == TEXT


def test_the_limit_is_exact() -> None:
    with pytest.raises(TooLarge):
        inflate(gzip.compress(TEXT), "gzip", len(TEXT) - 1)
    with pytest.raises(TooLarge):
        inflate(TEXT, None, len(TEXT) - 1)
    assert inflate(TEXT, None, len(TEXT)) is TEXT


def test_a_bomb_takes_no_more_memory_than_the_limit() -> None:
    bomb = gzip.compress(bytes(50_000_000), 9)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            inflate(bomb, "gzip", 100_000)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_cut_off_and_foreign_data() -> None:
    for data in (gzip.compress(TEXT)[:-1], b"", b"hello", zlib.compress(TEXT)[:50], b"\x1f\x8b\x08"):
        with pytest.raises(Corrupt):
            inflate(data, "gzip", 100_000)
    with pytest.raises(Corrupt, match="members"):
        inflate(gzip.compress(b"") * 2000, "gzip", 100_000)


def test_grpc_messages_tell_their_compression_by_themselves() -> None:
    assert compression(gzip.compress(TEXT)) == "gzip"
    for level in range(10):
        assert compression(zlib.compress(TEXT, level)) == "deflate"
    for plain in (b"", b"\x0a\x00", b"\x0a\x10" + TEXT, b"x", b"hello"):
        assert compression(plain) is None

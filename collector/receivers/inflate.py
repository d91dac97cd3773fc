"""Decompression that stops at a limit, so that a small request can not become a large one."""

from __future__ import annotations

import zlib

_GZIP_OR_ZLIB = 47  # zlib's window bits for "look at the header"
_RAW = -15
_MAX_MEMBERS = 1024  # a gzip stream may hold several members; 16 MiB in blocks of 64 KiB are 256
_PIECE = 64 * 1024  # what remains after a member is copied; pieces keep that linear

ENCODINGS = frozenset({"gzip", "x-gzip", "deflate"})


class TooLarge(ValueError):
    """Over the limit."""


class Corrupt(ValueError):
    """Not what its content encoding says, or cut off."""


class Inflater:
    """Takes compressed pieces, keeps what comes out; `limit` bounds the latter, in bytes.

    "deflate" is the zlib format by RFC 9110, and raw deflate by the habit of many senders; both are read.
    """

    __slots__ = ("_members", "_out", "_raw_allowed", "_stream", "limit", "size")

    def __init__(self, encoding: str, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._out: list[bytes] = []
        self._members = 0
        self._raw_allowed = encoding == "deflate"
        self._stream: zlib._Decompress | None = None

    def feed(self, data: bytes) -> None:
        """Raises `TooLarge`, `Corrupt`."""
        for start in range(0, len(data), _PIECE):
            self._feed(data[start : start + _PIECE])

    def _feed(self, piece: bytes) -> None:
        try:
            while piece:
                stream = self._stream
                if stream is None:
                    if self._members:
                        piece = piece.lstrip(b"\0")  # padding after a member
                        if not piece:
                            return
                    stream = self._stream = self._next_stream(piece)
                out = stream.decompress(piece, self.limit - self.size + 1)
                self.size += len(out)
                if self.size > self.limit:
                    raise TooLarge(f"more than {self.limit} bytes after decompression")
                self._out.append(out)
                if not stream.eof:
                    return
                self._stream = None
                piece = stream.unused_data
        except zlib.error as error:
            raise Corrupt(f"the body is not what Content-Encoding says: {error}") from error

    def _next_stream(self, piece: bytes) -> zlib._Decompress:
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise Corrupt(f"more than {_MAX_MEMBERS} compressed members in one body")
        if self._raw_allowed and not _is_zlib(piece):
            return zlib.decompressobj(_RAW)
        return zlib.decompressobj(_GZIP_OR_ZLIB)

    def finish(self) -> bytes:
        """All that came out. Raises `Corrupt` when the input ended in the middle."""
        if self._stream is not None or not self._members:
            raise Corrupt("the compressed body is cut off")
        return b"".join(self._out)


def _is_zlib(piece: bytes) -> bool:
    """Whether it starts as RFC 1950 says; one lone byte is taken as it looks."""
    if piece[0] & 0x0F != 8:
        return False
    return len(piece) < 2 or (piece[0] << 8 | piece[1]) % 31 == 0


def inflate(data: bytes, encoding: str | None, limit: int) -> bytes:
    """The whole of `data`; as it is when `encoding` is None. Raises `TooLarge`, `Corrupt`."""
    if encoding is None:
        if len(data) > limit:
            raise TooLarge(f"more than {limit} bytes")
        return data
    inflater = Inflater(encoding, limit)
    inflater.feed(data)
    return inflater.finish()


def compression(message: bytes) -> str | None:
    """How a gRPC message is compressed, told by its first bytes; None when it is not.

    Safe for OTLP requests: their first byte is 0x0A, or another known tag; gzip's is no valid tag at all, and
    zlib's is the tag of a field 15 that no request has.
    """
    if message[:2] == b"\x1f\x8b":
        return "gzip"
    if message[:1] == b"\x78" and len(message) > 1 and _is_zlib(message):
        return "deflate"
    return None

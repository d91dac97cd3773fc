"""Which items of a request hold a hint: one vectorised multi-literal search over all their bytes at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import ahocorasick_rs
import numpy as np

from collector.otlp.model import Encoding
from collector.otlp.rows import Rows
from collector.records.hints import Hints

OWN_MARKERS = (b"groundwatch.evaluation", b"groundwatch-evaluation")
"""What our own evaluation traffic carries: in a span attribute, and in the header and first line of a prompt."""


# What an occurrence says of an item, as flags to be added up.
CONTENT = 1
"""Its content is kept while its trace is open."""
WANTED = 2
"""Its trace is wanted: it is handed on when it is closed."""
LOG_EVENTS = 4
"""Its trace may have content in log records."""
OWN = 8
"""It is of our own evaluations."""


def _meanings(hints: Hints, encoding: Encoding) -> dict[bytes, int]:
    """What each literal says, in one encoding."""
    # Behind a key comes the tag of its value, or the quotation mark that ends it.
    end = b"\x12" if encoding is Encoding.PROTO else b'"'
    meanings: dict[bytes, int] = defaultdict(int)
    for literals, says in (
        (hints.content, CONTENT),
        (hints.wanted, WANTED | CONTENT),
        ([key + end for key in hints.wanted_keys if key], WANTED | CONTENT),
        (hints.log_events, WANTED | CONTENT | LOG_EVENTS),
        (OWN_MARKERS, OWN),
    ):
        for literal in literals:
            if literal:
                meanings[literal] |= says
    return dict(meanings)


# The search engine has a SIMD routine for up to 64 literals, which looks for the first four bytes of each. It is used
# only where the engine can not get by with three rare or three first bytes, and those of our hints ("." and "_") are
# not rare in telemetry: 2 us a span instead of 0.15. Four literals of bytes that UTF-8 never holds rule that out.
_DECOYS = tuple(bytes([byte]) * 8 for byte in (0xF8, 0xF9, 0xFA, 0xFB))
_MOST_LITERALS = 64 - len(_DECOYS)
_SHORTEST = 4
_AT_ONCE = 1024 * 1024  # bytes searched at once: a text of nothing but hints gives many times its size in matches
# What stands in nearly every span of ordinary applications. Each four of its bytes are no good start for a literal.
_ORDINARY = (
    b"http.request.method http.response.status_code http.route http.url http.method http.target http.user_agent "
    b"http.scheme http.host http.flavor url.full url.path url.scheme url.query network.protocol.version "
    b"network.peer.address network.peer.port server.address server.port client.address user_agent.original thread.name "
    b"thread.id db.system db.statement db.operation.name db.query.text db.collection.name db.namespace rpc.system "
    b"rpc.service rpc.method messaging.system messaging.destination.name messaging.operation messaging.message.id "
    b"error.type code.function code.filepath code.lineno peer.service net.peer.name net.host.name process.pid "
    b"host.name https://www.example.com/api/v1/items SELECT id, name FROM items WHERE INSERT INTO UPDATE SET VALUES "
    b"ORDER BY result return model background search data python-requests Mozilla/5.0 application/json"
)
_COMMON = frozenset(_ORDINARY[at : at + _SHORTEST] for at in range(len(_ORDINARY) - _SHORTEST + 1))


def minimal(hints: Iterable[bytes]) -> list[bytes]:
    """The hints without those that hold another one: where a longer one occurs, so does the shorter."""
    unique = sorted({hint for hint in hints if hint}, key=lambda hint: (len(hint), hint))
    kept: list[bytes] = []
    for hint in unique:
        if not any(shorter in hint for shorter in kept):
            kept.append(hint)
    return kept


def pieces(hints: Iterable[bytes]) -> list[bytes]:
    """Few literals, of which at least one occurs in each of the hints: parts that several of them share, and that are
    rare in ordinary telemetry."""
    left = set(minimal(hints))
    holders: dict[bytes, set[bytes]] = defaultdict(set)
    for hint in left:
        for start in range(len(hint) - _SHORTEST + 1):
            if hint[start : start + _SHORTEST] in _COMMON:
                continue
            for end in range(start + _SHORTEST, len(hint) + 1):
                piece = hint[start:end]
                # Four letters are a part of too many words.
                if len(piece) > _SHORTEST or not piece.isalnum():
                    holders[piece].add(hint)
    shared = {piece: some for piece, some in holders.items() if len(some) > 1}
    chosen: list[bytes] = []
    while shared:
        best = max(shared, key=lambda piece: (len(shared[piece]), len(piece), piece))
        covered = shared.pop(best)
        chosen.append(best)
        left -= covered
        shared = {piece: some for piece, others in shared.items() if len(some := others - covered) > 1}
    for hint in left:
        longest = max((piece for piece, some in holders.items() if hint in some), key=len, default=hint)
        chosen.append(longest)
    return minimal(chosen)


class _Search:
    """The search for the literals of one encoding."""

    def __init__(self, meanings: Mapping[bytes, int]) -> None:
        literals = pieces(meanings)
        self._longest = max(map(len, literals))
        passes = -(-len(literals) // _MOST_LITERALS)
        self._passes = [_Pass(literals[first::passes], meanings) for first in range(passes)]

    def find(self, items: Sequence[bytes], rows: Rows) -> dict[int, int]:
        found: dict[int, int] = {}
        joined = rows.joined
        for one in self._passes:
            if len(joined) <= _AT_ONCE:
                one.note(found, joined, items, rows)
                continue
            view = memoryview(joined)
            for at in range(0, len(joined), _AT_ONCE):
                one.note(found, view[at : at + _AT_ONCE + self._longest], items, rows, offset=at)
        return {row: says for row, says in found.items() if says}


class _Literal:
    """One literal of the search, and what it can say."""

    __slots__ = ("_hints", "_sure", "most", "text")

    def __init__(self, text: bytes, meanings: Mapping[bytes, int]) -> None:
        self.text = text
        self._sure = meanings.get(text, 0)
        self._hints = [(hint, says) for hint, says in meanings.items() if text in hint and hint != text]
        self.most = self._sure
        for _, says in self._hints:
            self.most |= says

    def adds(self, item: bytes, known: int) -> int:
        """What is known of an item in which this literal occurs, with what it adds to what is `known`."""
        known |= self._sure
        for hint, says in self._hints:
            if says & ~known and hint in item:
                known |= says
        return known

    def overlaps(self, other: _Literal) -> Iterator[bytes]:
        """The rests of `other` where it begins within this one: the search passes over it there."""
        for size in range(1, min(len(self.text), len(other.text))):
            if self.text.endswith(other.text[:size]):
                yield other.text[size:]


class _Pass:
    """As many literals as the engine searches for at once."""

    def __init__(self, part: Sequence[bytes], meanings: Mapping[bytes, int]) -> None:
        self._literals = [_Literal(literal, meanings) for literal in part]
        self._numbers = len(part) + len(_DECOYS)
        # By a literal and the byte behind it: the rests of literals that begin within it, and their numbers.
        self._followers: dict[int, list[tuple[bytes, int]]] = defaultdict(list)
        for number, literal in enumerate(self._literals):
            for other, follower in enumerate(self._literals):
                for rest in literal.overlaps(follower):
                    self._followers[number << 8 | rest[0]].append((rest, other))
        self._followed = np.zeros(self._numbers << 8, np.bool_)
        self._followed[list(self._followers)] = True
        self._find: Any = ahocorasick_rs.BytesAhoCorasick(
            [*part, *_DECOYS], matchkind=ahocorasick_rs.MatchKind.LeftmostFirst
        ).find_matches_as_indexes

    def note(
        self,
        found: dict[int, int],
        searched: bytes | memoryview,
        items: Sequence[bytes],
        rows: Rows,
        *,
        offset: int = 0,
    ) -> None:
        """Add what occurs in `searched`, which stands at `offset` in the rows."""
        matches: list[tuple[int, int, int]] = self._find(searched)
        if not matches:
            return
        flat = np.fromiter(chain.from_iterable(matches), np.int64, 3 * len(matches))
        numbers, starts, ends = flat[::3], flat[1::3], flat[2::3] + offset
        places = rows.starts.searchsorted(starts + offset, side="right") - 1
        # An item is looked through once for each literal, however often that occurs; shorter literals, which are shared
        # by more hints, come first.
        asked: list[int] = np.unique(places * self._numbers + numbers).tolist()
        behind = numbers << 8 | np.frombuffer(rows.joined, np.uint8)[ends]
        followed = self._followed[behind].nonzero()[0]
        for row, end, key in zip(*(of[followed].tolist() for of in (places, ends, behind)), strict=True):
            for rest, other in self._followers[key]:
                if rows.joined.startswith(rest, end):
                    asked.append(row * self._numbers + other)
        for code in asked:
            row, number = divmod(code, self._numbers)
            if number < len(self._literals):
                literal, known = self._literals[number], found.get(row, 0)
                if literal.most & ~known:
                    found[row] = literal.adds(items[row], known)


class HintSearch:
    """Finds the items in whose bytes a hint, or one of our own markers, occurs."""

    def __init__(self, hints: Hints) -> None:
        if not any((*hints.wanted, *hints.wanted_keys, *hints.log_events)):
            raise ValueError("no hints: assembly would drop every trace; pass what the conventions look for")
        self._searches = {encoding: _Search(_meanings(hints, encoding)) for encoding in Encoding}

    def find(self, items: Sequence[bytes], rows: Rows, encoding: Encoding) -> dict[int, int]:
        """What the hints that occur say of the items (CONTENT, WANTED ...), by their indices."""
        return self._searches[encoding].find(items, rows)


def is_own(data: bytes) -> bool:
    """Whether one of our own markers occurs: traffic of our own evaluation, never to be evaluated."""
    return any(marker in data for marker in OWN_MARKERS)

"""What a worker process does with a released trace: decode, extract, screen. Composed here, run there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from collector.extract.conventions.record import UnreadableRecord
from collector.extract.extractor import Extractor, Seen
from collector.extract.options import Options as ExtractOptions
from collector.extract.record import found_in
from collector.extract.redaction import Redactor
from collector.otlp.decode import Decoder, MalformedItem
from collector.otlp.model import RawItem
from collector.records.found import REPLAYED_ATTRIBUTE, Found, Mark
from collector.records.trace import ReleasedTrace
from collector.screening.options import Options as ScreeningOptions
from collector.screening.screen import Examined, Screen, handler

_T = TypeVar("_T")
_DECODER_ENTRIES = 1_000

_SEEN = {
    Seen.INTERACTION: "interactions",
    Seen.RETRIEVAL_ONLY: "nothing",
    Seen.OWN_EVALUATION: "nothing",
    Seen.NOTHING: "nothing",
}


@dataclass(frozen=True, slots=True)
class Examination:
    """Makes a worker's handler; picklable, called once in each worker process. `seed` is the key of hashed ids."""

    extract: ExtractOptions
    screening: ScreeningOptions
    seed: str = "groundwatch"

    def __call__(self) -> Callable[[list[ReleasedTrace]], list[Examined]]:
        examiner = Examiner(
            self.extract,
            Extractor(self.extract),
            Decoder(max_entries=_DECODER_ENTRIES),
            Redactor(self.extract.redaction, seed=self.seed),
        )
        return handler(examiner.examine, Screen(self.screening))


class Examiner:
    """Finds the interactions of a released trace, and redacts them: nothing behind it sees what was hidden."""

    def __init__(
        self, options: ExtractOptions, extractor: Extractor, decoder: Decoder, redactor: Redactor
    ) -> None:
        self._options = options
        self._extractor = extractor
        self._decoder = decoder
        self._redactor = redactor

    def examine(self, trace: ReleasedTrace) -> tuple[tuple[Found, ...], str, int]:
        """The interactions, what was seen, and how many items could not be decoded."""
        found, seen, malformed = (
            self._in_spans(trace) if trace.record is None else self._in_record(trace.record, trace.trace_id)
        )
        if found and all(Mark.NOT_RAG in one.marks for one in found):
            seen = "chat_only"
        return tuple(self._redactor.redact(one) for one in found), seen, malformed

    def _in_record(self, text: bytes, name: str) -> tuple[tuple[Found, ...], str, int]:
        try:
            found = found_in(text, self._options, name=name)
        except UnreadableRecord:
            return (), "nothing", 1
        return ((found,), "interactions", 0) if found is not None else ((), "nothing", 0)

    def _in_spans(self, trace: ReleasedTrace) -> tuple[tuple[Found, ...], str, int]:
        """A trace with a malformed item is not complete: what the item held may be the very context that is missing."""
        spans, bad_spans = _decoded(self._decoder.span, trace.spans)
        logs, bad_logs = _decoded(self._decoder.log_record, trace.logs)
        malformed = bad_spans + bad_logs
        extraction = self._extractor.extract(spans, logs, complete=trace.complete and not malformed)
        found = extraction.found
        if malformed:
            found = tuple(replace(one, marks=one.marks | {Mark.MALFORMED_SPAN}) for one in found)
        if any(REPLAYED_ATTRIBUTE in one.resource for one in found):
            found = tuple(replace(one, marks=one.marks | {Mark.REPLAYED}) for one in found)
        return found, _SEEN[extraction.seen], malformed


def _decoded(decode: Callable[[RawItem], _T], items: tuple[RawItem, ...]) -> tuple[list[_T], int]:
    decoded: list[_T] = []
    malformed = 0
    for item in items:
        try:
            decoded.append(decode(item))
        except MalformedItem:
            malformed += 1
    return decoded, malformed

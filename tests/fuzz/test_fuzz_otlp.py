"""Random, mutated and cut-off requests: an answer or a named error, never anything else, and nothing lost."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.otlp import encode
from collector.otlp.batch import Batch, Signal
from collector.otlp.decode import Decoder, MalformedItem
from collector.otlp.model import Encoding
from collector.otlp.request import RequestReader, UnreadableRequest
from collector.receivers.files import UnreadableFile, read_requests
from collector.receivers.inflate import Corrupt, TooLarge, compression, inflate

DATA = Path(__file__).parents[1] / "data" / "otlp"
SEEDS = sorted(path for path in DATA.iterdir() if path.suffix in (".pb", ".json"))
LIMIT = 64 * 1024


def read_all(body: bytes, signal: Signal, encoding: Encoding) -> Batch | None:
    try:
        batch = RequestReader(max_item_bytes=LIMIT).read(body, signal, encoding)
    except UnreadableRequest as error:
        assert str(error)
        return None
    for group in batch.groups:
        assert len(group.items) == len(group.trace_ids) == len(group.span_ids) > 0
    assert (batch.rejected > 0) == bool(batch.rejected_reason)
    decoder = Decoder()
    for item in encode.items(batch):
        for decode in (decoder.span, decoder.log_record):
            try:
                decode(item)
            except MalformedItem as error:
                assert len(str(error)) < 1000
    return batch


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(Signal), st.sampled_from(Encoding))
def test_random_bytes(body: bytes, signal: Signal, encoding: Encoding) -> None:
    read_all(body, signal, encoding)


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='{}[]":,\\u0dD8null traceIdspnresouS1e9-.', max_size=200), st.sampled_from(Signal))
def test_random_json(text: str, signal: Signal) -> None:
    read_all(text.encode(), signal, Encoding.JSON)
    read_all(
        b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + text.encode() + b"]}]}]}", Signal.TRACES, Encoding.JSON
    )


def mutated(seed: bytes, rng: random.Random) -> bytes:
    body = bytearray(seed)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(body))
        match rng.randrange(5):
            case 0:
                body[at] = rng.randrange(256)
            case 1:
                body[at] ^= 1 << rng.randrange(8)
            case 2:
                del body[at : at + rng.randint(1, 20)]
            case 3:
                body[at:at] = body[at : at + rng.randint(1, 50)]
            case 4:
                body[at:at] = rng.randbytes(rng.randint(1, 8))
        if not body:
            return b""
    return bytes(body)


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_mutations_of_recorded_requests(path: Path) -> None:
    rng = random.Random(path.name)
    seed = path.read_bytes()
    encoding = Encoding.JSON if path.suffix == ".json" else Encoding.PROTO
    readable = 0
    for _ in range(150):
        signal = rng.choice(list(Signal))
        readable += read_all(mutated(seed, rng), signal, encoding) is not None
    assert readable  # else this would test one sentence only


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.name)
def test_truncations_of_recorded_files(path: Path, tmp_path: Path) -> None:
    seed = path.read_bytes()
    cut = tmp_path / path.name
    for size in range(1, len(seed) - 1, max(1, len(seed) // 60)):
        cut.write_bytes(seed[:size])
        with pytest.raises(UnreadableFile, match=path.name):
            list(read_requests(cut))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]))
def test_random_compressed_bytes(data: bytes, encoding: str) -> None:
    with contextlib.suppress(Corrupt, TooLarge):
        assert len(inflate(data, encoding, LIMIT)) <= LIMIT
    compression(data)

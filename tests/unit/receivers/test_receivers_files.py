"""Export requests from files of every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collector.otlp.batch import Batch, Signal
from collector.receivers.files import UnreadableFile, read_requests

DATA = Path(__file__).parents[2] / "data" / "otlp"
TRACES, LOGS = DATA / "sdk.basic.pb", DATA / "openai_v2_legacy.error.2.logs.pb"
TRACES_JSON, LOGS_JSON = TRACES.with_suffix(".json"), LOGS.with_suffix(".json")


def seen(batches: list[Batch]) -> list[tuple[Signal, int]]:
    return [(batch.signal, len(batch)) for batch in batches]


def read(path: Path, content: bytes) -> list[tuple[Signal, int]]:
    path.write_bytes(content)
    return seen(list(read_requests(path)))


def line(path: Path) -> bytes:
    return json.dumps(json.loads(path.read_bytes())).encode() + b"\n"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.*")), ids=lambda path: path.name)
def test_the_name_says_nothing(path: Path, tmp_path: Path) -> None:
    if path.suffix == ".md":
        with pytest.raises(UnreadableFile, match=r"README\.md: offset 0: neither JSON nor a protobuf request"):
            list(read_requests(path))
        return
    signal = Signal.LOGS if ".logs." in path.name else Signal.TRACES
    ((found, count),) = read(tmp_path / "anything", path.read_bytes())
    assert found is signal
    assert count > 0


def test_json_lines_of_both_signals(tmp_path: Path) -> None:
    metrics = b'{"resourceMetrics":[]}\n'
    content = b"\n" + line(TRACES_JSON) + b"\r\n" + line(LOGS_JSON) + metrics + line(TRACES_JSON).rstrip()
    expected = [(Signal.TRACES, 3), (Signal.LOGS, 2), (Signal.TRACES, 3)]
    assert read(tmp_path / "lines", content) == expected
    assert read(tmp_path / "lines", b"\xef\xbb\xbf" + content.lstrip()) == expected


def test_lines_are_read_as_they_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(line(TRACES_JSON) + line(LOGS_JSON)[:-20])
    batches = read_requests(path)
    assert len(next(batches)) == 3
    with pytest.raises(UnreadableFile, match="lines: line 2: not a whole JSON object"):
        next(batches)


def test_one_document_with_both_signals_and_an_array(tmp_path: Path) -> None:
    both = {**json.loads(TRACES_JSON.read_bytes()), **json.loads(LOGS_JSON.read_bytes())}
    expected = [(Signal.TRACES, 3), (Signal.LOGS, 2)]
    assert read(tmp_path / "both", json.dumps(both, indent=1).encode()) == expected
    array = [json.loads(path.read_bytes()) for path in (TRACES_JSON, LOGS_JSON)]
    assert read(tmp_path / "array", json.dumps(array, indent=1).encode()) == expected


def test_framed_protobuf(tmp_path: Path) -> None:
    content = b"".join(len(body).to_bytes(4, "big") + body for body in (TRACES.read_bytes(), LOGS.read_bytes()))
    assert read(tmp_path / "framed", content) == [(Signal.TRACES, 3), (Signal.LOGS, 2)]
    with pytest.raises(UnreadableFile, match=rf"offset {len(TRACES.read_bytes()) + 4}: the file ends"):
        read(tmp_path / "framed", content[:-1])


def test_a_line_with_half_a_surrogate_pair(tmp_path: Path) -> None:
    item = b'{"traceId":"%b","spanId":"%b","name":"\\ud83d"}' % (b"ab" * 16, b"cd" * 8)
    content = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%b]}]}]}\n' % item
    assert read(tmp_path / "lines", content * 2) == [(Signal.TRACES, 1)] * 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b" \n\n", "the file is empty"),
        (b"\x1f\x8b\x08\x00", "gunzip"),
        (b"\x28\xb5\x2f\xfd\x00", "zstd -d"),
        (b"PK\x03\x04", "unpack it first"),
        (b"hello\n", "neither JSON nor a protobuf request"),
        (b'{"a":1}', "without resourceSpans or resourceLogs"),
        (b'{"a":1}\n{"a":2}\n', "line 1: JSON, but without"),
        (b'[{"a":1}]', "element 0: JSON, but without"),
        (b"[1,", "not a whole JSON array"),
        (b'{"resourceSpans":5}', "not an OTLP/JSON"),
        (b'{"resourceSpans":[', "not a whole JSON object"),
        (b"\x0a\x02\x12\x00", "without spans or log records"),
        (b"\x0a\x7fabc", "offset 0: a protobuf request that is cut off"),
        (b"\x0a\x02\x12\x00\x0a\x7f", "offset 4: a protobuf request that is cut off"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "offset 0"),
        (b"\x00\x00\x00\x02\x0a\x00", "offset 0: no protobuf request"),
    ],
)
def test_foreign_and_damaged_files(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "given"
    path.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        list(read_requests(path))
    assert str(caught.value).startswith(str(path))
    assert said in str(caught.value)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(read_requests(tmp_path / "missing"))

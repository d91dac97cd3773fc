"""A tiny ONNX sequence-pair classifier, written byte by byte, so that tests need no model file and no exporter.

It finds a pair supported unless the hypothesis (token type 1) holds one given token more often than the premise.
"""

from __future__ import annotations

import struct

FLOAT, INT64 = 1, 7


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _int(field: int, number: int) -> bytes:
    return _varint(field << 3) + _varint(number)


def _bytes(field: int, value: bytes | str) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, kind: int, value: bytes) -> bytes:
    return _bytes(5, _bytes(1, name) + value + _int(20, kind))


def _node(kind: str, inputs: list[str], output: str, *attributes: bytes) -> bytes:
    joined = b"".join(_bytes(1, name) for name in inputs) + _bytes(2, output) + _bytes(4, kind)
    return _bytes(1, joined + b"".join(attributes))


def _tensor(name: str, kind: int, dims: list[int], raw: bytes) -> bytes:
    return _bytes(5, b"".join(_int(1, dim) for dim in dims) + _int(2, kind) + _bytes(8, name) + _bytes(9, raw))


def _value(field: int, name: str, kind: int, dims: list[str | int]) -> bytes:
    shape = b"".join(_bytes(1, _bytes(2, dim) if isinstance(dim, str) else _int(1, dim)) for dim in dims)
    return _bytes(field, _bytes(1, name) + _bytes(2, _bytes(1, _int(1, kind) + _bytes(2, shape))))


def pair_classifier(token: int, *, columns: int = 2, input_name: str = "input_ids") -> bytes:
    """The model's bytes. Column 0 means supported: its logit is 3 - 6 x (count in hypothesis - in premise)."""
    cast_float = _attribute("to", 2, _int(3, FLOAT))
    nodes = [
        _node("Equal", [input_name, "token"], "is_token"),
        _node("Cast", ["is_token"], "marks", cast_float),
        _node("Cast", ["token_type_ids"], "side", cast_float),
        _node("Mul", ["side", "two"], "side2"),
        _node("Sub", ["side2", "one"], "sign"),  # +1 in the hypothesis, -1 in the premise
        _node("Mul", ["marks", "sign"], "signed"),
        _node(
            "ReduceSum",
            ["signed"],
            "excess",
            _attribute("axes", 7, _int(8, 1)),
            _attribute("keepdims", 2, _int(3, 1)),
        ),
        _node("MatMul", ["excess", "weights"], "scaled"),
        _node("Add", ["scaled", "bias"], "logits"),
    ]
    weights = struct.pack(f"<{columns}f", *([-6.0] + [0.0] * (columns - 1)))
    bias = struct.pack(f"<{columns}f", *([3.0] + [0.0] * (columns - 1)))
    graph = (
        b"".join(nodes)
        + _bytes(2, "pair")
        + _tensor("token", INT64, [1], struct.pack("<q", token))
        + _tensor("two", FLOAT, [1], struct.pack("<f", 2.0))
        + _tensor("one", FLOAT, [1], struct.pack("<f", 1.0))
        + _tensor("weights", FLOAT, [1, columns], weights)
        + _tensor("bias", FLOAT, [columns], bias)
        + _value(11, input_name, INT64, ["batch", "sequence"])
        + _value(11, "token_type_ids", INT64, ["batch", "sequence"])
        + _value(12, "logits", FLOAT, ["batch", columns])
    )
    return _int(1, 7) + _bytes(7, graph) + _bytes(8, _bytes(1, "") + _int(2, 11))

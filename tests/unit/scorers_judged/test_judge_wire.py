"""What replies of endpoints mean, one by one, and what a request says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scorers.errors import BadReply, BadScorerOptions, FormRefused, JudgeError, JudgeRefused
from scorers.judge.transport import make_transport
from scorers.judge.wire import Dialect, chat_body, error_of, read_chat, read_embeddings

STREAM = (
    b': ping\n\ndata: {"choices": []}\n\n'
    b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n'
)


def reply(message: object, **choice: object) -> bytes:
    return json.dumps({"choices": [{"message": message, **choice}]}).encode()


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (reply({"content": [{"type": "text", "text": "a"}, {"text": None}, "b", {"text": "c"}]}), "ac"),
        (reply({"content": None, "reasoning_content": "thought"}), ""),
        (b'\xef\xbb\xbf {"choices": [{"message": {"content": "x"}}]}', "x"),
        (STREAM, "a"),
        (reply({"content": "half", "refusal": "no"}), "half"),
    ],
)
def test_replies_that_are_read(raw: bytes, text: str) -> None:
    assert read_chat(raw).text == text


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (reply({"content": None, "refusal": "I can not help with that."}), JudgeRefused),
        (reply({"content": "x"}, finish_reason="content_filter"), JudgeRefused),
        (b"[]", BadReply),
        (b'{"choices": [{"text": "old"}]}', BadReply),
        (b'{"choices": "x"}', BadReply),
        (b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n', BadReply),
    ],
)
def test_replies_that_are_none(raw: bytes, error: type[JudgeError]) -> None:
    with pytest.raises(error):
        read_chat(raw)


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": -1}, {"prompt_tokens": True}, {"prompt_tokens": "9"}, {"prompt_tokens": 1 << 41}, None, 7],
)
def test_counts_that_can_not_be_are_no_counts(usage: object) -> None:
    raw = json.dumps({"choices": [{"message": {"content": "x"}}], "usage": usage}).encode()
    assert read_chat(raw).input_tokens is None


@pytest.mark.parametrize(
    "data",
    [
        [{"embedding": [1.0]}],
        [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}],
        [{"embedding": [1.0], "index": 0}, {"embedding": [1.0], "index": 0}],
        [{"embedding": []}, {"embedding": []}],
        [{"embedding": [1e308, 1e308]}, {"embedding": [1.0, 1.0]}],
    ],
)
def test_vectors_that_do_not_fit_are_no_reply(data: object) -> None:
    with pytest.raises(BadReply):
        read_embeddings(json.dumps({"data": data}).encode(), expected=2)


def test_vectors_come_in_the_order_of_their_texts() -> None:
    data = [{"embedding": [2.0], "index": 1}, {"embedding": [1.0], "index": 0}]
    assert read_embeddings(json.dumps({"data": data}).encode(), expected=2).vectors == ((1.0,), (2.0,))


@pytest.mark.parametrize("role", ["system", "developer", "none"])
def test_the_first_message_has_the_role_that_the_model_knows(role: str) -> None:
    raw = chat_body(
        model="m",
        system="rules",
        user="data",
        schema={},
        max_output_tokens=9,
        temperature=0.0,
        seed=None,
        system_role=role,
        dialect=Dialect(),
        extra={"messages": "not the user's", "temperature": 1.5},
    )
    body = json.loads(raw)
    told = [{"role": "user", "content": "rules\n\ndata"}]
    if role != "none":
        told = [{"role": role, "content": "rules"}, {"role": "user", "content": "data"}]
    assert body["messages"] == told
    assert body["temperature"] == 1.5, "the user's own field wins"
    assert "seed" not in body


def test_a_server_error_about_the_form_is_one_about_the_form() -> None:
    about_form = error_of(500, {}, b'{"detail": "Validation Error: response_format"}', unix_seconds=0)
    assert isinstance(about_form, FormRefused)
    assert isinstance(error_of(150, {}, b"", unix_seconds=0), BadReply)


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_a_file_of_authorities_that_can_not_be_used_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadScorerOptions, match=r"judge ca_file .*ca\.pem.* can not be used"):
        make_transport(url="https://judge/v1", ca_file=path, proxy=None, max_connections=1)

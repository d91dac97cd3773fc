"""A receipt is settled once, when the last holder lets go, and says so when somebody counts wrongly."""

from __future__ import annotations

import pytest

from collector.pipeline.receipt import Receipt


def test_settled_when_the_last_lets_go() -> None:
    settled: list[str] = []
    receipt = Receipt(lambda: settled.append("yes"))
    receipt.hold()
    receipt.release()
    assert receipt.open
    assert settled == []
    receipt.release()
    assert not receipt.open
    assert settled == ["yes"]


def test_counting_wrongly_is_an_error_and_settles_nothing_twice() -> None:
    settled: list[str] = []
    receipt = Receipt(lambda: settled.append("yes"))
    receipt.release()
    with pytest.raises(RuntimeError, match="more often"):
        receipt.release()
    with pytest.raises(RuntimeError, match="after it had been settled"):
        receipt.hold()
    assert settled == ["yes"]

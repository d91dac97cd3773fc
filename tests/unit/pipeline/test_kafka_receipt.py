"""Receipts of deliveries that can be lost to somebody else, or turn out to be unreadable."""

from __future__ import annotations

from collector.pipeline.receipt import Receipt


def test_lost_is_said_by_the_receipt_and_by_what_it_is_part_of() -> None:
    settled: list[str] = []
    first, second = Receipt(lambda: settled.append("first")), Receipt(lambda: settled.append("second"))
    both = Receipt(lambda: settled.append("both"), parts=(first, second))
    assert not both.lost
    second.lose()
    assert (first.lost, second.lost, both.lost) == (False, True, True)
    both.release()
    assert settled == ["both"]


def test_a_doubt_is_said_by_the_receipt_and_by_what_it_is_part_of_until_it_is_no_more() -> None:
    first, second = Receipt(lambda: None), Receipt(lambda: None)
    both = Receipt(lambda: None, parts=(first, second))
    second.doubt(True)
    assert (first.in_doubt, second.in_doubt, both.in_doubt) == (False, True, True)
    assert not both.lost
    second.doubt(False)
    assert not both.in_doubt


def test_a_lost_receipt_is_let_go_of_as_always() -> None:
    settled: list[int] = []
    receipt = Receipt(lambda: settled.append(1))
    receipt.hold()
    receipt.lose()
    receipt.release()
    assert receipt.open
    receipt.release()
    assert not receipt.open
    assert settled == [1]


def test_a_rejection_is_told_to_whoever_asked_for_it() -> None:
    told: list[str] = []
    receipt = Receipt(lambda: None)
    receipt.reject("nobody listens")
    receipt.rejected = told.append
    receipt.reject("unreadable_record")
    assert told == ["unreadable_record"]
    assert receipt.open

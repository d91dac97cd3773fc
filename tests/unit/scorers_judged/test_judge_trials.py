"""Trials of a judge as they are kept in a file: what is read again, whatever was cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

from scorers.judge.trials import BadTrials, Measured, Trial, read_trials, to_json

MEASURED = Measured("faithfulness", "scored", "", 1.0, "faithfulness/1@m")
TRIAL = Trial("집합", "행\u2028\x85 1", "standard", 0, 1.5, 2, 300, 40, None, False, (MEASURED,))
OTHER = Trial("집합", "2", "standard", 0, 1.5, 2, 300, 40, 0.01, True, (MEASURED,))
FINGERPRINTS = [MEASURED.fingerprint]


def line(one: Trial) -> bytes:
    return (to_json(one) + "\n").encode()


def test_whatever_an_id_holds_it_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "trials"
    path.write_bytes(line(TRIAL) + line(OTHER) + line(TRIAL))
    assert read_trials(path, FINGERPRINTS) == [TRIAL, OTHER]
    assert read_trials(tmp_path / "absent", FINGERPRINTS) == []


def test_a_line_that_was_cut_anywhere_is_no_trial_also_after_others_were_added(tmp_path: Path) -> None:
    path = tmp_path / "trials"
    whole = line(TRIAL)
    for end in range(1, len(whole) - 1):
        path.write_bytes(line(OTHER) + whole[:end])
        assert read_trials(path, FINGERPRINTS) == [OTHER]
        path.write_bytes(whole[:end] + b"\n" + line(OTHER))
        assert read_trials(path, FINGERPRINTS) == [OTHER], "a run that was cut, continued, and is continued again"


def test_failed_trials_are_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "trials"
    failed = Trial(
        "집합", "2", "standard", 0, 1, 1, 1, 1, None, False, (Measured("f", "failed", "deadline", None, "f"),)
    )
    path.write_bytes(line(failed) + line(TRIAL))
    assert read_trials(path, FINGERPRINTS) == [TRIAL]


@pytest.mark.parametrize("foreign", [b"text\n", b'{"id": 1}\n', b'{"set": "x"}\n', b"\xff\xfe\n", b"[]\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path: Path, foreign: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(line(TRIAL) + foreign)
    with pytest.raises(BadTrials, match="other:2: no trial of bench-judge; name another file"):
        read_trials(path, FINGERPRINTS)


def test_results_of_another_instrument_are_not_continued(tmp_path: Path) -> None:
    path = tmp_path / "trials"
    path.write_bytes(line(TRIAL))
    with pytest.raises(BadTrials, match="measured by faithfulness/1@m, which this run does not use"):
        read_trials(path, ["faithfulness/2@m"])

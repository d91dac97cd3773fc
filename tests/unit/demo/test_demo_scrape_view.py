"""What the demo reads off /metrics, and what it shows of it."""

from __future__ import annotations

import io
import math

import pytest

from collector.demo.scrape import Estimate, Snapshot, between, moved, read
from collector.demo.view import MAX_ROWS, Frame, View, ordered


def exposition(n: int, mean: float, *, failed: float = 0.0, segments: tuple[str, ...] = ("a", "b")) -> str:
    """`n` answers of weight 1 in each segment, all scored `mean`."""
    lines = []
    for segment in segments:
        labels = f'metric="faithfulness",tier="fast",service="{segment}"'
        values = {"w": n, "w2": n, "wy": n * mean, "w2y": n * mean, "w2y2": n * mean**2}
        lines += [f"groundwatch_local_sum_{part}_total{{{labels}}} {value}" for part, value in values.items()]
        for outcome, value in (("scored", n), ("not_applicable", 2), ("failed", failed)):
            lines.append(f'groundwatch_local_weight_total{{{labels},outcome="{outcome}"}} {value}')
        lines.append(f'groundwatch_judged_sum_w_total{{metric="faithfulness",service="{segment}"}} 0')
    lines.append(f"groundwatch_interactions_found_total {n * len(segments)}")
    lines.append(f'groundwatch_interactions_total{{fate="queued"}} {n}')
    lines.append('other_total{metric="faithfulness"} 5')
    return "\n".join(lines) + "\n"


def test_counters_are_added_up_over_segments() -> None:
    snapshot = read(exposition(30, 0.5))
    assert list(snapshot.sums[("faithfulness", "local", "fast")]) == [60, 60, 30, 30, 15, 0, 0, 0, 60, 4, 0]
    assert snapshot.found == 60
    assert snapshot.fates["queued"] == 30


def test_an_estimate_is_made_of_the_difference_of_two_snapshots() -> None:
    (estimate,) = between(read(exposition(50, 1.0)), read(exposition(100, 0.75, failed=25)))
    # 100 more answers; the sum of scores grew from 100 to 150.
    assert estimate.key == ("faithfulness", "local", "fast")
    assert estimate.mean == pytest.approx(0.5)
    assert estimate.n_eff == 100
    assert estimate.lower < 0.5 < estimate.upper
    assert estimate.coverage == pytest.approx(100 / 150)
    assert estimate.not_applicable == 0


def test_metrics_on_which_nothing_came_are_left_out() -> None:
    snapshot = read(exposition(10, 0.5))
    assert between(snapshot, snapshot) == []
    assert len(between(Snapshot(), snapshot)) == 1


def test_what_is_no_exposition_is_refused() -> None:
    with pytest.raises(ValueError, match="page"):
        read("groundwatch_interactions_found_total page\n")


def made(metric: str = "faithfulness", mean: float = 0.9, half: float = 0.05, n: float = 100) -> Estimate:
    return Estimate((metric, "local", "fast"), mean, mean - half, mean + half, n, 0.99, 1)


def test_only_what_left_its_interval_has_moved() -> None:
    before = [made(), made("groundedness"), made("noncommittal", 0.2), made("x", math.nan)]
    after = [made(mean=0.4), made("groundedness", 0.85), made("noncommittal", 0.05, 0.01), made("x"), made("new")]
    assert [(old.mean, new.mean) for old, new in moved(before, after)] == [(0.9, 0.4), (0.2, 0.05)]


def frame(estimates: list[Estimate]) -> Frame:
    return Frame(75.0, 90.0, "1.5.0", "note", "http://127.0.0.1:4318", 20.0, 321, estimates)


def test_default_metrics_stand_on_top() -> None:
    rows = ordered([made("citations"), made("groundedness"), made("faithfulness")])
    assert [row.key[0] for row in rows] == ["faithfulness", "groundedness", "citations"]


def test_without_a_terminal_each_frame_is_one_plain_line() -> None:
    out = io.StringIO()
    view = View(out, live=False)
    view.show(frame([made(), made("groundedness", n=19)]))
    view.show(frame([]))
    lines = out.getvalue().splitlines()
    assert lines[0] == (
        "[  75 s] release 1.5.0  321 interactions  faithfulness 0.90 (0.85 .. 0.95)  groundedness 0.90 (too few)"
    )
    assert lines[1].endswith("no scores yet")
    assert "\x1b" not in out.getvalue()


def test_on_a_terminal_a_frame_is_drawn_over_the_last_and_kept_within_the_width() -> None:
    out = io.StringIO()
    view = View(out, live=True, width=60, height=40)
    view.show(frame([made(f"metric_{n}") for n in range(MAX_ROWS + 3)]))
    first = out.getvalue()
    height = first.count("\n")
    assert "... and 3 more on the page" in first
    assert all(len(line.removeprefix("\x1b[2K")) <= 60 for line in first.splitlines())
    view.show(frame([made()]))
    assert out.getvalue().removeprefix(first).startswith(f"\x1b[{height}A\x1b[2K01:15 of 01:30")
    view.say("done")
    view.show(frame([]))
    assert out.getvalue().split("done\n")[1].startswith("\x1b[2K")


def test_the_course_of_a_score_is_drawn_in_what_the_output_can_encode() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    view = View(out, live=True)
    for mean in (1.0, 0.0, math.nan):
        view.show(frame([made(mean=mean)]))
    out.flush()
    assert b"  @_\n" in out.buffer.getvalue()  # type: ignore[attr-defined]  # BytesIO, which the stub hides


def test_a_frame_is_never_higher_than_the_terminal() -> None:
    out = io.StringIO()
    View(out, live=True, height=12).show(frame([made(f"metric_{n}") for n in range(9)]))
    assert out.getvalue().count("\n") < 12
    assert "... and 5 more on the page" in out.getvalue()

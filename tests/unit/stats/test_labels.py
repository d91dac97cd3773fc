"""People's labels of a few judged answers: the mean they would have given, and whether its interval covers it."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from collector.stats.control import ControlSums
from collector.stats.interval import logit_interval
from collector.stats.labels import MIN_LABELS, Labelled, label_sums, labelled_interval

RUNS = 1_200
ANSWERS = 600
CHANCE = 0.0125
"""Two standard errors of a coverage of 0.95 in so many runs."""
TRUE = 0.75 + 0.25 * 2 / 3.85


def traffic(dice: np.random.Generator, *, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """What people would say of `ANSWERS` answers, and what a judge says who is 0.05 too low on average."""
    h = np.where(dice.random(ANSWERS) < 0.75, 1.0, dice.beta(2, 1.85, ANSWERS))
    return h, np.clip(0.8 * h + 0.12 + dice.normal(0, noise, ANSWERS), 0, 1)


def drawn(
    dice: np.random.Generator, y: np.ndarray, *, expected: float, spread: float
) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of being labelled, up to `spread` times as high where the judge was low, and who was drawn."""
    raw = 1 + (spread - 1) * (1 - y)
    pi = np.clip(raw / raw.mean() * expected / len(y), 0, 1)
    return pi, dice.random(len(y)) < pi


@pytest.mark.parametrize("noise", [0.05, 0.4], ids=["good-judge", "bad-judge"])
@pytest.mark.parametrize(("spread", "sampled"), [(1, False), (5, False), (5, True)])
def test_the_interval_covers_what_people_would_say_from_50_labels(
    noise: float, spread: float, sampled: bool
) -> None:
    """`sampled`: half of the traffic was judged with probability 0.2, so that weights are unequal."""
    dice = np.random.default_rng(11)
    found: list[Labelled] = []
    while len(found) < RUNS:
        h, y = traffic(dice, noise=noise)
        p = np.where(dice.random(ANSWERS) < 0.5, 0.2, 1.0) if sampled else np.ones(ANSWERS)
        pi, chosen = drawn(dice, y, expected=60 / p.mean(), spread=spread)
        judged = dice.random(ANSWERS) < p
        labels = np.where(chosen, h, np.nan)[judged]
        one = labelled_interval(
            label_sums(1 / p[judged], y[judged], pi[judged], labels), labels=(~np.isnan(labels)).sum()
        )
        if one.usable:
            found.append(one)
    covered = np.mean([one.lower <= TRUE <= one.upper for one in found])
    assert 0.93 - CHANCE <= covered <= 0.98 + CHANCE
    mean = np.mean([float(one.mean) for one in found])
    assert abs(mean - TRUE) < 0.005, "the judge's error of 0.05 is corrected, but for a tenth of it"
    # The judge's own interval would be about another number.
    assert np.mean([float(one.judged_mean) for one in found]) < TRUE - 0.03
    assert np.mean([float(one.gain) for one in found]) > (2 if noise < 0.1 else 1.1)


def example() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    dice = np.random.default_rng(4)
    h, y = traffic(dice, noise=0.1)
    w = 1 / dice.choice([0.2, 0.5, 1.0], ANSWERS)
    pi, chosen = drawn(dice, y, expected=80, spread=4)
    return w, y, pi, np.where(chosen, h, np.nan)


def test_it_is_the_regression_on_the_judges_score() -> None:
    w, y, pi, h = example()
    got = labelled_interval(label_sums(w, y, pi, h), labels=80)
    here = ~np.isnan(h)
    whole, v = (w / pi)[here], (w / pi - w)[here]
    m, my = np.average(h[here], weights=whole), np.average(y, weights=w)
    q = np.where(here, w / pi - w, w)
    k = (whole * v * (h[here] - m) * (y[here] - my)).sum() / (q**2 * (y - my) ** 2).sum() * w.sum() / whole.sum()
    assert float(got.mean) == pytest.approx(m - k * (np.average(y[here], weights=whole) - my))
    assert float(got.judged_mean) == pytest.approx(my)
    assert float(got.shift) == pytest.approx(my - float(got.mean))
    alone = logit_interval(whole.sum(), (whole**2).sum(), (whole * h[here]).sum(), (whole**2 * h[here]).sum(),
                           (whole**2 * h[here] ** 2).sum())  # fmt: skip
    assert got.upper - got.lower < alone.upper - alone.lower


def test_sums_of_parts_are_the_sums_of_all() -> None:
    w, y, pi, h = example()
    whole = label_sums(w, y, pi, h)
    halves = label_sums(*(x.reshape(2, -1) for x in (w, y, pi, h)))
    for field in fields(ControlSums):
        assert np.sum(getattr(halves, field.name)) == pytest.approx(float(getattr(whole, field.name)), rel=1e-12)


def test_a_skip_is_no_answer_and_not_applicable_is_one() -> None:
    w, y, pi, h = example()
    labelled = np.flatnonzero(~np.isnan(h))
    skipped = h.copy()
    skipped[labelled[0]] = np.nan
    as_if_not_drawn = label_sums(w, y, pi, skipped)
    assert np.asarray(as_if_not_drawn.u) == pytest.approx(w.sum()), "the judge's score of it still counts"
    outside = np.zeros(ANSWERS, bool)
    outside[labelled[0]] = True
    beside = label_sums(w, y, pi, h, not_applicable=outside)
    assert beside.w == pytest.approx(as_if_not_drawn.w)
    assert beside.j == pytest.approx(np.asarray(as_if_not_drawn.j) + w[labelled[0]] / pi[labelled[0]])


def test_few_labels_give_a_number_that_is_not_to_be_shown() -> None:
    w, y, pi, h = example()
    few = h.copy()
    few[np.flatnonzero(~np.isnan(h))[MIN_LABELS - 1 :]] = np.nan
    assert not labelled_interval(label_sums(w, y, pi, few), labels=MIN_LABELS - 1).usable
    assert labelled_interval(label_sums(w, y, pi, h), labels=MIN_LABELS).usable
    none = labelled_interval(label_sums(w, y, pi, np.full(ANSWERS, np.nan)), labels=0)
    assert np.isnan(none.mean)
    assert float(none.judged_mean) == pytest.approx(np.average(y, weights=w))
    assert not none.usable


def test_clusters_of_labels_widen_the_interval() -> None:
    w, y, pi, h = example()
    sums = label_sums(w, y, pi, h)
    alone = labelled_interval(sums, labels=80)
    alike = tuple(3 * np.asarray(x) for x in (sums.w2, sums.w2y, sums.w2y2))
    told = labelled_interval(sums, labels=80, clusters=(alike[0], alike[1], alike[2]))
    assert told.upper - told.lower > alone.upper - alone.lower


@pytest.mark.parametrize(
    ("w", "pi", "message"),
    [
        (0.0, 0.5, "a weight is not a finite number over 0"),
        (np.inf, 0.5, "a weight is not a finite number over 0"),
        (1.0, 0.0, r"not in \(0, 1\]; leave out answers that can not be drawn"),
        (1.0, 1.5, r"not in \(0, 1\]"),
        (1.0, np.nan, r"not in \(0, 1\]"),
    ],
)
def test_what_can_not_be_is_refused(w: float, pi: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        label_sums([1.0, w], [0.5, 0.5], [0.5, pi], [1.0, np.nan])

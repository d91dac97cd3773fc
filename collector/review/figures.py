"""The values of an agreement report."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scorers.judge.figures import Figure


@dataclass(frozen=True, slots=True)
class Confusion:
    """Shares that add up to 1: the first word is what was said, the second what is held to be right."""

    good_good: float
    good_bad: float
    bad_good: float
    bad_bad: float


@dataclass(frozen=True, slots=True)
class Bin:
    """Cases with a score from `low` to under `high` (1 included in the last): their mean score, and what it is by
    those held to be right."""

    low: float
    high: float
    n: int
    mean_score: float
    right: Figure


@dataclass(frozen=True, slots=True)
class Compared:
    """`first` against `second`, which is held to be right; `n` cases that have both.

    `weighted` tells whether they stand for the traffic; `n_eff` is their effective number. Balanced accuracy, AUROC
    and kappa are None where all are good, or all bad. `calibration_error` is the mean distance of score and truth
    over the bins. `undetermined` of `n` are disagreements without a number, taken as the middle of what they can be.
    """

    metric: str
    segment: str
    first: str
    second: str
    weighted: bool
    threshold: float
    n: int
    n_eff: float
    confusion: Confusion
    accuracy: Figure
    balanced_accuracy: Figure | None
    auroc: Figure | None
    kappa: Figure | None
    calibration: tuple[Bin, ...]
    calibration_error: float
    undetermined: int


@dataclass(frozen=True, slots=True)
class Response:
    """Of `whole` cases with a known probability `reached` had their turn: `answered` with a label of this metric,
    `skipped` looked at and left, `left` the others."""

    whole: int
    reached: int
    answered: int
    skipped: int
    left: int

    @property
    def share(self) -> float:
        return self.answered / self.reached if self.reached else math.nan


@dataclass(frozen=True, slots=True)
class Corrected:
    """The quality of all traffic as people would score it, by the scores of `first` and the labels.

    `mean` and `share` (of answers at the threshold and above) have 95 % intervals, None under `MIN_LABELS` labels.
    `first_mean` and `first_share` are the instrument's own, `naive_mean` the plain mean of the labels. `gain` is how
    many times more labels the labels alone would take. `mean_bounds` and `share_bounds` put all cases without an
    answer at 0, and at 1; None where all answered.
    """

    metric: str
    segment: str
    first: str
    threshold: float
    labels: int
    response: Response
    first_mean: float
    first_share: float
    naive_mean: float
    mean: Figure | None
    share: Figure | None
    gain: float | None
    mean_bounds: tuple[float, float] | None
    share_bounds: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Agreement:
    """The report. `instruments` are the fingerprints by metric and kind with their cases: more than one of a kind
    were mixed. `reached_order` is how far the order drawn was labelled, 0 to 1; `drawn` are the cases that the quality
    is told of, which ended between `since_unix` and `until_unix`."""

    cases: int
    labelled: int
    drawn: int
    reached_order: float
    since_unix: float | None
    until_unix: float | None
    by: str | None
    compared: tuple[Compared, ...]
    corrected: tuple[Corrected, ...]
    instruments: Mapping[str, Mapping[str, Mapping[str, int]]]

"""One metric's scores and labels as columns, and what agreement and quality they give. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from collector.review.figures import Bin, Compared, Confusion, Corrected, Response
from collector.stats.interval import Floats, logit_interval
from collector.stats.labels import MIN_LABELS, label_sums, labelled_interval
from scorers.judge.figures import Figure, Judged, agreement
from scorers.scorer import Kind

PEOPLE, JUDGED, LOCAL = "people", str(Kind.JUDGED), str(Kind.LOCAL)
BINS = 10
_MIN_EFFECTIVE = 2.0

Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Columns:
    """One row a case. Scores are NaN where there is none, `low` and `high` (what people say) where nobody did.

    `weight` is how many interactions of the traffic a case stands for, NaN where not known; `local_probability` what
    a local score's weight is divided by. `known` marks those with a weight, `whole` those that could be labelled in
    the order drawn, `reached` those of them whose turn came, `skipped` those that were looked at and left. Cases of
    one `group` may be alike.
    """

    judged: Floats
    local: Floats
    low: Floats
    high: Floats
    local_probability: Floats
    weight: Floats
    known: Mask
    whole: Mask
    reached: Mask
    skipped: Mask
    group: Codes

    def where(self, inside: Mask) -> Columns:
        """Some of the rows."""
        return Columns(**{one.name: getattr(self, one.name)[inside] for one in fields(self)})

    def of(self, name: str) -> Floats:
        """The scores of an instrument, or what people say: the middle where it is a range."""
        if name == PEOPLE:
            return np.asarray((self.low + self.high) / 2)
        return self.judged if name == JUDGED else self.local

    def weights(self, name: str) -> Floats:
        return np.asarray(self.weight / self.local_probability) if name == LOCAL else self.weight


@dataclass(frozen=True, slots=True)
class Table:
    """One metric in one segment; `threshold` is the score from which an answer counts as good."""

    metric: str
    segment: str
    threshold: float
    columns: Columns

    def compared(self, first: str, second: str, *, weighted: bool) -> Compared | None:
        """None where no case has both. Cases without weights are those that are not in the weighted figures."""
        columns = self.columns
        one, other = columns.of(first), columns.of(second)
        drawn = columns.reached if second == PEOPLE else columns.known
        chosen = ~np.isnan(one) & ~np.isnan(other) & (drawn if weighted else ~drawn)
        n = int(chosen.sum())
        if not n:
            return None
        score, right, group = one[chosen], other[chosen], columns.group[chosen]
        weight = columns.weights(first)[chosen] if weighted else np.ones(n)
        said_good, good = score >= self.threshold, right >= self.threshold
        rows = Judged(good.astype(float), score, [str(code) for code in group], weight)
        agreed = agreement(rows, self.threshold)
        total = weight.sum()
        shares = [
            float(weight[(said_good == says) & (good == is_good)].sum() / total)
            for says in (True, False)
            for is_good in (True, False)
        ]
        bins = _bins(score, right, weight, group)
        return Compared(
            metric=self.metric,
            segment=self.segment,
            first=first,
            second=second,
            weighted=weighted,
            threshold=self.threshold,
            n=n,
            n_eff=float(total**2 / (weight**2).sum()),
            confusion=Confusion(*shares),
            accuracy=mean_of((said_good == good).astype(float), weight, group),
            balanced_accuracy=agreed[0] if agreed else None,
            auroc=agreed[1] if agreed else None,
            kappa=agreed[2] if agreed else None,
            calibration=bins,
            calibration_error=_calibration_error(score, right, weight),
            undetermined=int((columns.low[chosen] < columns.high[chosen]).sum()) if second == PEOPLE else 0,
        )

    def corrected(self, first: str) -> Corrected | None:
        """None where the instrument scored nothing of what was drawn, or nobody labelled in order."""
        columns = self.columns
        score = columns.of(first)
        chosen = columns.whole & ~np.isnan(score)
        if not (chosen & columns.reached).any():
            return None
        score, weight, group = score[chosen], columns.weights(first)[chosen], columns.group[chosen]
        reached = columns.reached[chosen]
        low, high = (np.where(reached, one[chosen], np.nan) for one in (columns.low, columns.high))
        answered = ~np.isnan(low)
        labels = int(answered.sum())
        skipped = int((reached & columns.skipped[chosen] & ~answered).sum())
        response = Response(
            whole=len(score),
            reached=int(reached.sum()),
            answered=labels,
            skipped=skipped,
            left=int(reached.sum()) - labels - skipped,
        )
        said_good = (score >= self.threshold).astype(float)
        middle = (low + high) / 2
        is_good = np.where(answered, (middle >= self.threshold).astype(float), np.nan)
        enough = labels >= MIN_LABELS

        def estimate(first_score: Floats, label: Floats) -> tuple[Figure, float]:
            return _corrected(weight, first_score, label, group)

        def bounds(first_score: Floats, low: Floats, high: Floats) -> tuple[float, float] | None:
            if response.answered == response.reached:
                return None
            missing = reached & ~answered
            least = estimate(first_score, np.where(missing, 0.0, low))[0].value
            return least, estimate(first_score, np.where(missing, 1.0, high))[0].value

        mean = share = gain = mean_bounds = share_bounds = None
        if enough:
            found, gain = estimate(score, middle)
            mean = Figure(found.value, estimate(score, low)[0].low, estimate(score, high)[0].high)
            share, _ = estimate(said_good, is_good)
            mean_bounds, share_bounds = bounds(score, low, high), bounds(said_good, is_good, is_good)
        return Corrected(
            metric=self.metric,
            segment=self.segment,
            first=first,
            threshold=self.threshold,
            labels=labels,
            response=response,
            first_mean=float(np.average(score, weights=weight)),
            first_share=float(np.average(said_good, weights=weight)),
            naive_mean=float(np.nanmean(middle)) if labels else math.nan,
            mean=mean,
            share=share,
            gain=gain,
            mean_bounds=mean_bounds,
            share_bounds=share_bounds,
        )


def _corrected(weight: Floats, score: Floats, label: Floats, group: Codes) -> tuple[Figure, float]:
    """The mean of labels over the whole, and the gain; NaN where there is no label."""
    answered = ~np.isnan(label)
    pi = np.full(len(weight), max(answered.sum(), 1) / len(weight))
    sums = label_sums(weight, score, pi, label)
    found = labelled_interval(
        sums, labels=answered.sum(), clusters=_clusters((weight / pi)[answered], label[answered], group[answered])
    )
    return Figure(float(found.mean), float(found.lower), float(found.upper)), float(found.gain)


def _clusters(weight: Floats, y: Floats, group: Codes) -> tuple[float, float, float]:
    _, code = np.unique(group, return_inverse=True)
    a, b = np.bincount(code, weights=weight), np.bincount(code, weights=weight * y)
    return float((a * a).sum()), float((a * b).sum()), float((b * b).sum())


def mean_of(y: Floats, weight: Floats, group: Codes) -> Figure:
    """The weighted mean of values in [0, 1] with its interval; ends are None under an effective number of two."""
    w, w2, wy = weight.sum(), (weight**2).sum(), (weight * y).sum()
    clusters = _clusters(weight, y, group)
    made = logit_interval(w, w2, wy, (weight**2 * y).sum(), ((weight * y) ** 2).sum(), clusters=clusters)
    if made.n_eff < _MIN_EFFECTIVE:
        return Figure(float(made.mean), None, None)
    return Figure(float(made.mean), float(made.lower), float(made.upper))


def _places(score: Floats) -> Codes:
    return np.minimum((score * BINS).astype(np.int64), BINS - 1)


def _bins(score: Floats, right: Floats, weight: Floats, group: Codes) -> tuple[Bin, ...]:
    made: list[Bin] = []
    place = _places(score)
    for number in range(BINS):
        inside = place == number
        if inside.any():
            made.append(
                Bin(
                    number / BINS,
                    (number + 1) / BINS,
                    int(inside.sum()),
                    float(np.average(score[inside], weights=weight[inside])),
                    mean_of(right[inside], weight[inside], group[inside]),
                )
            )
    return tuple(made)


def _calibration_error(score: Floats, right: Floats, weight: Floats) -> float:
    """Expected calibration error (Naeini et al. 2015)."""
    apart = np.bincount(_places(score), weights=weight * (score - right), minlength=BINS)
    return float(np.abs(apart).sum() / weight.sum())

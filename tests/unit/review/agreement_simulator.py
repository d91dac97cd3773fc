"""Traffic with a judge whose errors are planted, a control drawn from it, and people who label in the order drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collector.records.decision import Fate
from collector.review.agreement import Builder
from collector.review.case import Case, CaseDecision, CaseResult, Origin, OutcomeKind, Pick, Reason
from collector.review.figures import Agreement
from collector.review.labels import Label, LabelKind
from scorers.interaction import Interaction

METRIC = "faithfulness"
THRESHOLD = 0.5
Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class World:
    """`lenient` is added to the judge's scores of bad answers, `flips` is the share that he turns around; answers that
    he scores low are judged with probability 1, others with `judged`. Sessions hold `session_size` answers."""

    lenient: float = 0.1
    noise: float = 0.1
    flips: float = 0.05
    judged: float = 1.0
    session_size: int = 1
    skips: float = 0.05

    def answers(self, dice: Random, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What people would say, what the judge says, and each one's session."""
        session = np.arange(count) // self.session_size
        luck = dice.random(session[-1] + 1)[session] if self.session_size > 1 else dice.random(count)
        own = np.where(dice.random(count) < 0.6, luck, dice.random(count))  # sessions are alike, mostly
        h = np.where(own < 0.7, 1.0, dice.beta(1.2, 2, count))
        y = np.clip(h + self.lenient * (h < 1) + dice.normal(0, self.noise, count), 0, 1)
        return h, np.where(dice.random(count) < self.flips, 1 - y, y), session

    def probability(self, y: np.ndarray) -> np.ndarray:
        return np.where(y < THRESHOLD, 1.0, self.judged)


@dataclass(frozen=True, slots=True)
class Truth:
    mean: float
    share: float
    accuracy: float
    balanced_accuracy: float
    auroc: float
    kappa: float


def truth(world: World, *, count: int = 400_000) -> Truth:
    """Of the traffic itself, counted by hand."""
    h, y, _ = world.answers(np.random.default_rng(99), count)
    good, says = h >= THRESHOLD, y >= THRESHOLD
    right = float((good == says).mean())
    chance = float(good.mean() * says.mean() + (~good).mean() * (~says).mean())
    order = np.argsort(np.argsort(y, kind="stable"), kind="stable") + 1.0
    _, inverse, counts = np.unique(y, return_inverse=True, return_counts=True)
    mean_rank = (np.bincount(inverse, weights=order) / counts)[inverse]
    n1, n0 = good.sum(), (~good).sum()
    return Truth(
        mean=float(h.mean()),
        share=float(good.mean()),
        accuracy=right,
        balanced_accuracy=float((says[good].mean() + (~says[~good]).mean()) / 2),
        auroc=float((mean_rank[good].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)),
        kappa=(right - chance) / (1 - chance),
    )


def cases(dice: Random, world: World, *, answers: int, kept: float, labels: int) -> Iterator[Case]:
    """The control's cases of so many answers, `kept` of the judged ones, of which people took the first `labels` in
    the order drawn, but for `skips`; and twenty more that somebody picked for being low, and labelled."""
    h, y, session = world.answers(dice, answers)
    p = world.probability(y)
    judged = np.flatnonzero(dice.random(answers) < p)
    order = dice.random(len(judged))
    control = dice.random(len(judged)) < kept
    taken = judged[control][np.argsort(order[control])][:labels]
    skipped = set(taken[dice.random(len(taken)) < world.skips].tolist())
    turn = set(taken.tolist())
    for place in np.flatnonzero(control):
        number = int(judged[place])
        label = _label(h[number], skipped=number in skipped) if number in turn else ()
        pick = Pick(Reason.CONTROL, 1.0, kept, float(order[place]))
        yield _case(number, y[number], p[number], session[number], (pick,), label)
    low = judged[~control][np.argsort(y[judged[~control]])][:20]
    for number in low.tolist():
        picked = Pick(Reason.LOW_SCORE, 1.0)
        yield _case(number, y[number], p[number], session[number], (picked,), _label(h[number], in_order=False))


def _label(h: float, *, skipped: bool = False, in_order: bool = True) -> tuple[Label, ...]:
    if skipped:
        return (Label(LabelKind.SKIP, "anna", 2.0, 1, in_order=in_order),)
    return (Label(LabelKind.SCORE, "anna", 2.0, 1, float(h), METRIC, in_order=in_order),)


def _case(
    number: int, y: float, p: float, session: int, picks: tuple[Pick, ...], labels: tuple[Label, ...]
) -> Case:
    return Case(
        id=f"case-{number}",
        interaction=Interaction(id=f"case-{number}"),
        picks=picks,
        ended_unix=1_700_000_000.0,
        results=(CaseResult(METRIC, "judged", OutcomeKind.SCORED, score=float(y), fingerprint="judge"),),
        decision=CaseDecision(Fate.QUEUED, float(p), "base"),
        origin=Origin(session=f"session-{session}"),
        labels=labels,
    )


def one(dice: Random, world: World, *, answers: int = 1_500, kept: float = 0.3, labels: int = 60) -> Agreement:
    builder = Builder()
    for case in cases(dice, world, answers=answers, kept=kept, labels=labels):
        builder.add(case)
    return builder.report()

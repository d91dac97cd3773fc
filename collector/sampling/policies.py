"""The configured policies, made."""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from collector.pipeline.clock import Clock
from collector.sampling.marks import Marks, MarksOptions
from collector.sampling.options import Options
from collector.sampling.policy import Policy
from collector.sampling.rate import Rate, RateOptions
from collector.sampling.rules import Rules, RulesOptions, SegmentsOf
from collector.sampling.scores import Scores, ScoresOptions
from collector.sampling.stratified import Stratified, StratifiedOptions


def make(options: Options, *, segments: SegmentsOf, clock: Clock) -> list[Policy]:
    """What the options ask for; where they list no policies, the one rate."""
    if not options.policies:
        return [Rate(options.rate)]
    made: list[Policy] = []
    for policy in options.policies:
        match policy:
            case RateOptions():
                made.append(Rate(policy.rate, name=policy.name))
            case RulesOptions():
                made.append(Rules(policy, segments=segments))
            case StratifiedOptions():
                made.append(Stratified(policy, segments=segments, clock=clock))
            case ScoresOptions():
                made.append(Scores(policy))
            case MarksOptions():
                made.append(Marks(policy))
            case _:
                assert_never(policy)
    return made


def floor_of(options: Options) -> float:
    """A lone rate that is set below the floor is meant: the floor guards what policies and the budget make of it."""
    return options.floor if options.policies else min(options.floor, options.rate)


def least_of(options: Options) -> float:
    """A probability that no interaction goes below, before the budget and the queue lower it."""
    if not options.policies:
        return options.rate
    together = 0.0
    for policy in options.policies:
        match policy:
            case RateOptions():
                least = policy.rate
            case RulesOptions():
                least = min(policy.otherwise, *(rule.probability for rule in policy.rules))
            case ScoresOptions():
                least = min(policy.otherwise, policy.without_score, *(step.probability for step in policy.steps))
            case _:
                least = 0.0
        together += least - together * least
    return max(together, options.floor)


def unscreened(options: Options, metrics: Collection[str]) -> list[str]:
    """What to say of policies that look at scores which screening, that gives `metrics`, does not make."""
    return [
        f"sampling.policies: {policy.name!r} looks at the local score {policy.metric!r}, which screening.scorers does "
        f"not run: every interaction would be without one; add it there, or take one of {', '.join(sorted(metrics))}"
        for policy in options.policies
        if isinstance(policy, ScoresOptions) and policy.metric not in metrics
    ]

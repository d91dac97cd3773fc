"""Options of sampling."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from collector.sampling.marks import MarksOptions
from collector.sampling.matching import Match, Strict, Texts
from collector.sampling.patterns import matcher
from collector.sampling.policy import FLOOR
from collector.sampling.rate import RateOptions
from collector.sampling.rules import RulesOptions
from collector.sampling.scores import ScoresOptions
from collector.sampling.stratified import StratifiedOptions

MAX_SEGMENT_VALUES = 20
DEFAULT_RATE = 0.05
BUDGET = "budget"
SHED = "shed"
NO_JUDGE = "no_judge"
RESERVED = frozenset({FLOOR, BUDGET, SHED, NO_JUDGE})
"""What decisions and hashes are called that are no policy's."""
OTHER = "other"
UNSET = "unset"
"""The value of interactions that do not have a segment's attribute."""

PolicyOptions = Annotated[
    RateOptions | RulesOptions | StratifiedOptions | ScoresOptions | MarksOptions, Field(discriminator="type")
]


class UpstreamMode(StrEnum):
    NONE = "none"
    TRACESTATE = "tracestate"
    RATIO = "ratio"
    UNKNOWN = "unknown"


class UpstreamSetting(Strict):
    """What is known of the sampling of one service before groundwatch. In YAML: a mode's name, or `ratio: 0.1`."""

    mode: UpstreamMode = Field(default=UpstreamMode.NONE, description="none, tracestate, ratio or unknown.")
    ratio: float = Field(default=1.0, gt=0, le=1, description="Share of traces that upstream lets through.")

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"mode": value}
        if isinstance(value, dict) and "ratio" in value and "mode" not in value:
            return {**value, "mode": "ratio"}
        return value

    @model_validator(mode="after")
    def _ratio_goes_with_its_mode(self) -> Self:
        if self.mode is not UpstreamMode.RATIO and self.ratio != 1.0:
            raise ValueError(f"ratio ({self.ratio}) has no meaning with mode {self.mode.value}: use mode: ratio")
        return self


class UpstreamOptions(Strict):
    """Sampling that happened before groundwatch (SDK samplers, the Collector). Fan out to groundwatch before tail
    sampling; where that can not be, say unknown."""

    default: UpstreamSetting = Field(
        default=UpstreamSetting(),
        description="For services that are not listed: none, tracestate, unknown, ratio.",
    )
    services: dict[str, UpstreamSetting] = Field(default_factory=dict, description="By service.name.")
    max_adjusted_count: float = Field(
        default=1000.0,
        ge=1,
        le=1e6,
        description="Highest upstream weight; higher ones are lowered to it and counted.",
    )


class BudgetOptions(Strict):
    """What judging may spend in a day (UTC), of this process."""

    calls_per_day: int | None = Field(default=10_000, ge=0, description="Judge calls; null = no limit.")
    usd_per_day: float | None = Field(
        default=1.0, ge=0, description="US dollars, where the price of the judge is known; null = no limit."
    )
    share: float = Field(
        default=1.0, gt=0, le=1, description="This process's share of the budget: 1 / number of replicas."
    )
    expected_calls: float = Field(
        default=4.0, gt=0, description="Judge calls an interaction takes, until it is known from the first few."
    )


_TEST_NAMES = ("test", "tests", "testing", "ci")

DEFAULT_TEST_TRAFFIC: tuple[Match, ...] = (
    *(
        Match(attribute=name, equals=_TEST_NAMES, ignore_case=True)
        for name in ("deployment.environment.name", "deployment.environment", "langfuse.environment")
    ),
    Match(attribute="langfuse.environment", equals=("sdk-experiment", "experiment")),
    Match(attribute="langfuse.environment", glob=("langfuse-*",)),
    Match(attribute="langfuse.experiment.id"),
    Match(attribute="langsmith.reference_example_id"),
    Match(attribute="mlflow.traceTag.eval.requestId"),
    Match(attribute="openinference.project.name", glob=("Experiment-*", "playground", "evaluators")),
)


class Segment(Strict):
    """A dimension by which estimates are split. A value that is neither listed nor matched is `other`."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,39}$", description="The label's name in metrics.")
    attribute: str = Field(
        min_length=1,
        description="Attribute of the resource or of the interaction's spans; `service` = service.name.",
    )
    values: Texts = Field(default=(), description="Values that are told apart, as they are.")
    glob: Texts = Field(
        default=(),
        description="Values that fit are told apart too, in order of appearance until there are max_values. Replicas "
        "agree only while all of them fit: list the values where there are more.",
    )
    max_values: int = Field(
        default=MAX_SEGMENT_VALUES, ge=1, le=MAX_SEGMENT_VALUES, description="Most values beside `other`."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.values) > self.max_values:
            raise ValueError(
                f"segment {self.name!r} lists {len(self.values)} values, more than max_values ({self.max_values}): "
                "list fewer, the rest is 'other'"
            )
        if not self.values and not self.glob:
            raise ValueError(f"segment {self.name!r} has no values and no glob: everything would be 'other'")
        return self

    def can_be(self, value: str) -> bool:
        """Whether interactions can have this value."""
        listed = value in (OTHER, UNSET) or value in self.values
        return listed or (bool(self.glob) and matcher(globs=self.glob)(value))


_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


class Options(Strict):
    """Which interactions are estimated at all, and which of them are judged."""

    rate: float = Field(
        default=DEFAULT_RATE,
        gt=0,
        le=1,
        description="Share of interactions that are judged, where policies is empty.",
    )
    policies: tuple[PolicyOptions, ...] = Field(
        default=(),
        max_length=8,
        description="What is judged how often, in place of rate; any of them keeps an interaction. By type: rate "
        "{rate}, rules {rules: [{match, segments, probability}], otherwise}, stratified {segment, values, otherwise}, "
        "scores {metric, steps: [{below, probability}], otherwise, unscored}, marks {errors, marks}; each may have a "
        "name.",
    )
    floor: float = Field(
        default=0.01,
        gt=0,
        le=1,
        description="No policy judges any interaction with a lower probability; the budget serves it first. A rate "
        "below it is taken as it is.",
    )
    lowest: float = Field(
        default=0.0001,
        gt=0,
        le=1,
        description="The budget never lowers a probability below this; what then goes over it is stopped by the "
        "judge's own limit.",
    )
    budget: BudgetOptions = Field(default=BudgetOptions(), description="What judging may spend.")
    upstream: UpstreamOptions = Field(default=UpstreamOptions(), description="Sampling before groundwatch.")
    include: tuple[Match, ...] = Field(
        default=(), description="Where there are any, only interactions that one of these matches are estimated."
    )
    exclude: tuple[Match, ...] = Field(
        default=(), description="Interactions that one of these matches are left out."
    )
    test_traffic: tuple[Match, ...] = Field(
        default=DEFAULT_TEST_TRAFFIC,
        description="What marks test environments and experiments; left out. [] lets them in.",
    )
    segments: tuple[Segment, ...] = Field(
        default=(Segment(name="service", attribute="service", glob=("*",)),),
        max_length=4,
        description="By what estimates are split.",
    )

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [segment.name for segment in self.segments]
        if len(set(names)) != len(names):
            raise ValueError(f"segments need different names: {', '.join(names)}")
        return self

    @field_validator("policies")
    @classmethod
    def _names_of_their_own(cls, value: tuple[PolicyOptions, ...]) -> tuple[PolicyOptions, ...]:
        names = [policy.name for policy in value]
        for name in names:
            if not _NAME.fullmatch(name) or name in RESERVED:
                raise ValueError(
                    f"a policy can not be called {name!r}: take small letters, digits and _, and none of "
                    f"{', '.join(sorted(RESERVED))}"
                )
        if len(set(names)) != len(names):
            raise ValueError(f"policies need different names (add `name:`), these are {', '.join(names)}")
        return value

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Self:
        if self.policies and self.rate != DEFAULT_RATE:
            raise ValueError(
                f"rate ({self.rate:g}) says nothing beside policies: list {{type: rate, rate: {self.rate:g}}} among "
                "them, or leave policies out"
            )
        return self

    @model_validator(mode="after")
    def _segments_of_policies(self) -> Self:
        known = {segment.name: segment for segment in self.segments}
        for policy in self.policies:
            if not isinstance(policy, RulesOptions | StratifiedOptions):
                continue
            for name, values in policy.segment_values():
                if name not in known:
                    raise ValueError(
                        f"policy {policy.name!r} names the segment {name!r}, and segments has only "
                        f"{', '.join(known) or 'none'}"
                    )
                for value in values:
                    if not known[name].can_be(value):
                        raise ValueError(
                            f"policy {policy.name!r}: {value!r} is never a value of the segment {name!r}; add it to "
                            "the segment's values, or use other"
                        )
        return self

"""Settings of the estimates."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from scorers.scorer import Kind

PROMPT_VERSION_ATTRIBUTES = (
    "gen_ai.prompt.version",
    "llm.prompt_template.version",
    "langfuse.observation.prompt.version",
    "langfuse.prompt.version",
    "metadata.prompt_version",
    "prompt.version",
    "prompt_version",
)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterOptions(Strict):
    """Interactions that belong together, so that many of them tell less than as many single ones."""

    by: tuple[Literal["session", "question"], ...] = Field(
        ("session", "question"),
        description="What makes a cluster: the first of these that an interaction has. Leave out `session` where the "
        "application puts one id on everything; [] makes each interaction its own.",
    )
    max_judged: int = Field(
        10_000,
        ge=16,
        description="Clusters of judged interactions remembered at a time; the stalest is forgotten.",
    )
    max_local: int = Field(10_000, ge=16, description="The same for all interactions.")
    max_age_seconds: float = Field(
        21_600,
        gt=0,
        description="Age at which a cluster is closed and begun anew. Intervals of windows up to this length hold "
        "all that its interactions have in common; longer ones only through the random groups of totals.",
    )

    @model_validator(mode="after")
    def _once(self) -> Self:
        if len(set(self.by)) != len(self.by):
            raise ValueError(f"clusters.by: {list(self.by)} names something twice")
        return self


class Objective(Strict):
    """A service level: the share of answers, by weight, whose score is good."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$", description="Name in labels and alerts.")
    metric: str = Field(
        min_length=1, description="The metric it speaks of, as `groundwatch_judged_sum_w_total` has it."
    )
    kind: Kind = Field(Kind.JUDGED, description="Whose scores count: judged, or local (fast tier).")
    threshold: float = Field(ge=0, le=1, description="A score of at least this is good, 0 to 1.")
    good: Literal["at_least", "at_most"] = Field(
        "at_least", description="`at_most` for metrics where lower is better (noncommittal)."
    )
    target: float = Field(gt=0, lt=1, description="Share of answers that should be good, such as 0.95.")
    segment: dict[str, str] = Field(
        default_factory=dict,
        description="Segment values it is limited to, such as {service: shop}; {} = all interactions.",
    )


class Thresholds(Strict):
    """Scores from which a part of the pipeline counts as good, 0 to 1; below is low."""

    context_relevance: float = Field(0.5, ge=0, le=1, description="Contexts fit the question.")
    faithfulness: float = Field(0.7, ge=0, le=1, description="The answer is supported by the contexts.")
    response_relevancy: float = Field(0.5, ge=0, le=1, description="The answer speaks to the question.")
    noncommittal: float = Field(0.5, ge=0, le=1, description="The answer refuses.")
    average_precision: float = Field(
        0.7, ge=0, le=1, description="Relevant contexts stand first (context_precision)."
    )
    precision_at_k: float = Field(
        0.5, ge=0, le=1, description="Share of relevant contexts (precision_at_k, else passage_relevance)."
    )


class DiagnosisOptions(Strict):
    """From which scores on an interaction's parts are good."""

    judged: Thresholds = Field(default_factory=Thresholds, description="For the judge's scores.")
    local: Thresholds = Field(
        default_factory=lambda: Thresholds(faithfulness=0.5), description="For local scores, which are coarser."
    )


class ChangeOptions(Strict):
    """Releases, models, prompts and scorers that are told apart; what is over the bounds is `other`."""

    values: int = Field(5, ge=1, le=20, description="Values remembered of each service and dimension.")
    max_values: int = Field(250, ge=1, description="Values remembered in all.")
    max_versions: int = Field(25, ge=1, description="Pairs of service and version that have sums of their own.")
    replace_after_seconds: float = Field(
        3_600,
        ge=0,
        description="A value gives way to a new one only when it has not been seen for this long, so that no trace "
        "can fill Prometheus with labels.",
    )
    prompt_version_attributes: tuple[str, ...] = Field(
        PROMPT_VERSION_ATTRIBUTES,
        description="Span attributes that hold the prompt's version; the first one wins.",
    )


class Level(Strict):
    """A level that a mean must not be worse than, given instead of learned."""

    metric: str = Field(min_length=1, description="The metric, as `groundwatch_judged_sum_w_total` has it.")
    kind: Kind = Field(Kind.JUDGED, description="Whose scores: judged, or local (fast tier).")
    mean: float = Field(
        gt=0, lt=1, description="The mean should be at least this; at most, where lower is better (noncommittal)."
    )
    segment: dict[str, str] = Field(
        default_factory=dict,
        description="Segment values it is limited to, every segment named: {service: shop}; {} = all interactions.",
    )


class DetectionOptions(Strict):
    """Change detection: says when a mean got worse than its baseline, with a bounded rate of false alarms."""

    enabled: bool = Field(True, description="Whether anything is watched.")
    alarms_per_month: float = Field(
        1.0, gt=0, le=1_000, description="False alarms allowed a month, of all watched series together."
    )
    judged_per_month: float | None = Field(
        None,
        ge=1,
        description="Scored interactions a month of this process, added up over all watched series; null = as "
        "measured over the baseline, then frozen.",
    )
    metrics: tuple[str, ...] | None = Field(
        None, description="Judged metrics that are watched; null = all of the judge, [] = none."
    )
    local: tuple[str, ...] = Field(
        (),
        description="Local metrics (fast tier) that are watched too, in total. They see all traffic, and are coarse.",
    )
    by_segment: bool = Field(
        True,
        description="Watch judged metrics in each combination of segment values but `other`, beside the total.",
    )
    levels: tuple[Level, ...] = Field(
        (), max_length=200, description="Levels that are given; the rest is learned."
    )
    baseline_days: float = Field(
        7,
        gt=0,
        description="A baseline is learned over whole multiples of this, so that each day of the week is in it.",
    )
    baseline_n: float = Field(
        1_000, ge=50, description="Effective number of clusters that a learned baseline must hold."
    )
    tolerance: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="A learned level is at least this far from the baseline's mean. Where some days are ordinarily "
        "worse than others, by so much.",
    )
    level_days: float = Field(
        1, gt=0, description="Time over which traffic and weights are measured before a given level is watched."
    )
    cluster_idle_seconds: float = Field(
        600,
        gt=0,
        description="A session, or one question asked by many, is one bet, placed when it was idle for so long.",
    )
    cluster_max_seconds: float = Field(3_600, gt=0, description="Or when it is so old.")
    max_clusters: int = Field(10_000, ge=1, description="Most open at a time; the one idle for longest is closed.")
    max_series: int = Field(200, ge=1, description="Most series watched; each takes six on /metrics.")

    @model_validator(mode="after")
    def _once(self) -> Self:
        seen = [(one.metric, one.kind, tuple(sorted(one.segment.items()))) for one in self.levels]
        twice = sorted({metric for metric, *_ in (one for one in seen if seen.count(one) > 1)})
        if twice:
            raise ValueError(f"levels: two for the same series of {', '.join(twice)}")
        return self


class Options(Strict):
    """Weighted sums, intervals, service levels and causes."""

    series_budget: int = Field(
        8_000,
        ge=100,
        description="Most time series that the weighted sums may take; a segment value or a version that would pass "
        "it is counted as 'other'.",
    )
    min_n_eff_interval: float = Field(
        20, ge=2, description="Effective number of scored interactions from which an interval is drawn."
    )
    clusters: ClusterOptions = Field(
        default_factory=ClusterOptions, description="Sessions and repeated questions."
    )
    objectives: tuple[Objective, ...] = Field((), max_length=50, description="Service levels.")
    diagnosis: DiagnosisOptions = Field(default_factory=DiagnosisOptions, description="Thresholds of the causes.")
    changes: ChangeOptions = Field(default_factory=ChangeOptions, description="What counts as a change.")
    detection: DetectionOptions = Field(
        default_factory=DetectionOptions, description="Alarms when a mean gets worse than its baseline."
    )

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [objective.name for objective in self.objectives]
        if len(set(names)) != len(names):
            raise ValueError(f"objectives need different names: {', '.join(names)}")
        return self

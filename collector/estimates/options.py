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

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [objective.name for objective in self.objectives]
        if len(set(names)) != len(names):
            raise ValueError(f"objectives need different names: {', '.join(names)}")
        return self

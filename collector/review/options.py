"""Settings of the review store and of what is picked for it: the section `review:` of groundwatch.yaml."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from collector.records.diagnosis import Cause


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ControlOptions(Strict):
    """The uniform part: of all judged interactions (of all screened ones where no judge is configured)."""

    rate: float = Field(
        0.05, ge=0, le=1, description="Highest share that is kept, by keyed hash with a known probability."
    )
    per_day: float = Field(
        200,
        ge=0,
        description="About how many a day; the share is lowered beforehand, by the traffic of the hour before.",
    )


class PickOptions(Strict):
    """What becomes a case. Quotas are per segment and any 24 hours; 0 turns a reason off."""

    control: ControlOptions = Field(default_factory=ControlOptions, description="The uniform control part.")
    low_score: float = Field(0.5, ge=0, le=1, description="Scores over this are never picked for being low.")
    low_share: float = Field(
        0.05, gt=0, le=1, description="Share of a segment's latest scores that counts as its lowest."
    )
    low_per_day: int = Field(50, ge=0, description="Cases a day picked for a low score.")
    disagreement: float = Field(
        0.5, gt=0, le=1, description="Distance of the local and the judged score from which they disagree."
    )
    disagreement_per_day: int = Field(20, ge=0, description="Cases a day picked because the two disagree.")
    noise: float = Field(
        0.3, gt=0, le=1, description="Distance of two judged scores of one interaction from which it is noise."
    )
    noise_per_day: int = Field(20, ge=0, description="Cases a day picked because the judge contradicted itself.")
    causes: tuple[Cause, ...] = Field(
        tuple(cause for cause in Cause if cause not in (Cause.FINE, Cause.UNDETERMINED)),
        description="Causes of the diagnosis of which cases are picked.",
    )
    cause_per_day: int = Field(10, ge=0, description="Cases a day picked for each cause.")
    feedback_per_day: int = Field(100, ge=0, description="Cases a day picked for a user's feedback.")
    feedback_score: float = Field(
        0.5, ge=0, le=1, description="Feedback with a score over this makes no case; it is still kept on one."
    )
    recent_interactions: int = Field(
        2_000, ge=0, description="Interactions remembered in memory, so that late feedback can make a case."
    )
    recent_bytes: int = Field(64 * 2**20, ge=0, description="Most bytes of them.")
    max_segments: int = Field(
        500, ge=1, description="Combinations of segment values that have quotas of their own; the rest share one."
    )


class Options(Strict):
    """The review store; off unless `path` is set here or `process.state_dir` is."""

    enabled: bool = Field(
        True, description="False turns the store off where `process.state_dir` would turn it on."
    )
    path: Path | None = Field(
        None,
        description="SQLite file of the cases; `review.sqlite` in `process.state_dir` where absent. Readable by its "
        "owner only.",
    )
    max_cases: int = Field(100_000, ge=1, description="Most cases; the oldest go first, labelled ones last.")
    max_bytes: int = Field(
        2 * 2**30, ge=2**20, description="Most bytes of cases on disk; the oldest go first, labelled ones last."
    )
    max_age_days: float = Field(30, gt=0, description="Age at which a case without a label goes.")
    labelled_max_age_days: float = Field(
        365, gt=0, description="Age at which a labelled case goes; cases of the golden set stay."
    )
    queue_cases: int = Field(
        1_000, ge=1, description="Cases that may wait to be written; more are dropped, and counted."
    )
    queue_bytes: int = Field(64 * 2**20, ge=2**20, description="Most bytes of them.")
    max_case_bytes: int = Field(
        4 * 2**20, ge=2**16, description="Most bytes of one case as JSON; a larger one is dropped, and counted."
    )
    feedback_names: tuple[str, ...] = Field(
        ("user_feedback", "feedback"),
        description="Log events `gen_ai.evaluation.result` with one of these as `gen_ai.evaluation.name` are what a "
        "user said of an answer. Empty: none are.",
    )
    read_seconds: float = Field(5, gt=0, description="Longest time for one search; then it is given up.")
    pick: PickOptions = Field(default_factory=PickOptions, description="What becomes a case, and how many a day.")

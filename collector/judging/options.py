"""Settings of the judging stage."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    concurrency: int = Field(
        16,
        ge=1,
        description="Interactions judged at the same time, at most; fewer while the judge takes fewer calls than that.",
    )
    deadline_seconds: float = Field(120, gt=0, description="Longest time for judging one interaction.")
    max_age_seconds: float = Field(
        900,
        gt=0,
        description="Longest wait in the queue; then every metric of the interaction is failed: expired.",
    )
    queue_jobs: int = Field(5_000, ge=1, description="Interactions that may wait.")
    queue_bytes: int = Field(256 * 1024 * 1024, ge=1, description="Memory that waiting interactions may take.")
    shed_from: float = Field(
        0.5,
        ge=0,
        lt=1,
        description="Fill of the queue (of jobs, bytes or age, whichever is fullest) from which fewer are let in.",
    )
    min_keep_probability: float = Field(
        0.05, gt=0, le=1, description="Share of the chosen that is let in even by a queue that is nearly full."
    )
    retry_seconds: float = Field(
        30, gt=0, description="Pause before a job is tried again when the judge was down."
    )
    cancel_grace_seconds: float = Field(
        10, gt=0, description="Time a cancelled job has to give its slot back before the slot is taken from it."
    )
    repeat_rate: float = Field(
        0.01,
        ge=0,
        le=1,
        description="Share of the judged interactions that is judged twice, past the cache and outside of the "
        "estimates, to know the judge's noise; 0: none.",
    )
    canary_hours: float = Field(
        6,
        ge=0,
        description="Hours between two askings of the planted cases, of which the first is at the start; 0: never.",
    )

"""Settings of the screening stage."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, field_validator

from scorers.local import DEFAULT


class Options(BaseModel):
    """Which fast local scorers run on every interaction, on how many processes, and what may wait."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scorers: tuple[str, ...] = Field(DEFAULT, description="Local scorers to run on every interaction.")
    full_rate: float = Field(
        0.0,
        ge=0,
        le=1,
        description="Share of interactions that the full tier scores too, beside the fast one; chosen by hash, with "
        "this probability in their weight. Needs the extra [local]; each costs about as much CPU as 40 fast ones.",
    )
    full_scorers: tuple[str, ...] = Field(
        ("faithfulness", "groundedness", "context_relevance", "passage_relevance", "response_relevancy"),
        description="Local scorers of the full tier.",
    )
    workers: int = Field(
        1,
        ge=0,
        le=64,
        description="Worker processes. 0 screens in the main process and delays ingest; for tests and the smallest "
        "set-ups.",
    )
    batch_traces: int = Field(16, ge=1, le=1024, description="Most traces handed to a worker at once.")
    batch_bytes: int = Field(
        4 * 1024 * 1024, ge=1, description="Most bytes handed to a worker at once (one trace may be larger)."
    )
    deadline_seconds: float = Field(
        60.0, gt=0, description="A worker that takes longer for a batch is killed and replaced."
    )
    queue_traces: int = Field(10_000, ge=1, description="Traces that may wait for screening.")
    queue_bytes: int = Field(128 * 1024 * 1024, ge=1, description="Bytes of traces that may wait for screening.")
    shed_from: float = Field(
        0.5,
        gt=0,
        lt=1,
        description="Fill of the queue (in traces or bytes, whichever is fuller) from which traces are shed by "
        "hash.",
    )
    min_keep_probability: float = Field(
        1 / 64, gt=0, le=1, description="Share of traces that is let in even by a queue that is nearly full."
    )
    salt: str = Field(
        "screening",
        description="Key of the hash that chooses which traces are shed; the same on all replicas.",
    )
    cache_bytes: int = Field(
        64 * 1024 * 1024, ge=0, description="Memory of each worker for passages that it has read before."
    )
    calibration: Path | None = Field(None, description="An own calibration table (groundwatch calibrate --out).")

    @field_validator("scorers", "full_scorers")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in DEFAULT]
        if unknown:
            raise ValueError(f"no local scorer is called {unknown[0]!r}; there are: {', '.join(DEFAULT)}")
        if len(set(value)) != len(value):
            raise ValueError("a scorer is listed twice")
        return value

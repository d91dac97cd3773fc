"""Settings of what outlives the process."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

MIB = 1024 * 1024


class BooksOptions(BaseModel):
    """The books in `process.state_dir`: which interactions were counted, and the sums."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    window_seconds: float = Field(
        86_400,
        gt=0,
        description="For how long the id of a counted interaction is remembered; what comes again later counts anew.",
    )
    max_keys: int = Field(
        1_000_000,
        ge=1_000,
        description="Ids remembered at most, the last ones; about 50 bytes of disk each.",
    )
    commit_seconds: float = Field(
        1.0,
        gt=0,
        le=60,
        description="Time between two commits. /metrics shows what was committed, and commits by itself.",
    )


class SpoolOptions(BaseModel):
    """The spool in `process.state_dir`: OTLP that was acknowledged and is not yet settled (durability: spool)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_bytes: int = Field(
        1024 * MIB,
        ge=MIB,
        description="Content that may wait in the spool. When it is full, requests are refused with a hint when to try "
        "again.",
    )

"""Options of assembly."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

MIB = 1024 * 1024


class Options(BaseModel):
    """When a trace is closed, and how much memory open traces may take."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    quiet_seconds: float = Field(
        default=10.0,
        gt=0,
        le=3600,
        description="A trace with a local root is closed after this long without news.",
    )
    quiet_log_events_seconds: float = Field(
        default=30.0,
        gt=0,
        le=3600,
        description="The same for a trace whose spans follow a convention that puts content in log events; they "
        "come in requests of their own, mostly later.",
    )
    orphan_quiet_factor: float = Field(
        default=3.0,
        ge=1,
        le=100,
        description="A trace in which every span still waits for its parent is closed after quiet_seconds times "
        "this without news (or quiet_log_events_seconds, if longer): its parent may be an answer in the making.",
    )
    deadline_seconds: float = Field(
        default=600.0, gt=0, le=86_400, description="A trace is closed at this age, whatever still comes."
    )
    max_bytes: int = Field(
        default=256 * MIB,
        ge=MIB,
        description="Memory for open traces, in bytes of growth of the process. When it is full, traces are "
        "evicted; when that is not enough, requests are refused with a hint when to try again.",
    )
    memory_factor: float = Field(
        default=1.15,
        ge=1,
        le=4,
        description="Growth of the process for each byte that the assembler counts as held (allocator overhead).",
    )
    max_trace_bytes: int = Field(
        default=8 * MIB,
        ge=1024,
        description="Memory for one trace. Spans over it are cut to their ids, counted, and make it incomplete.",
    )
    max_trace_spans: int = Field(
        default=20_000,
        ge=1,
        description="Spans of one trace. Spans over it are thrown away, counted, and make it incomplete.",
    )
    evict_after_seconds: float = Field(
        default=60.0,
        ge=0,
        description="Traces that carry a hint are evicted for memory only from this age on. Younger ones are "
        "protected (requests are refused instead), so that under overload some traces still become complete.",
    )
    tombstones: int = Field(
        default=200_000,
        ge=2,
        description="Closed traces that are remembered, so that a late span does not open them again. About 150 "
        "bytes each; traces with and without a hint are remembered apart, half each.",
    )
    dedup_window_seconds: float = Field(
        default=86_400.0, gt=0, description="For how long at most a closed trace is remembered."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.max_trace_bytes > self.max_bytes:
            raise ValueError(
                f"max_trace_bytes ({self.max_trace_bytes}) is more than max_bytes ({self.max_bytes}): "
                "lower the first or raise the second"
            )
        if self.deadline_seconds < self.quiet_seconds:
            raise ValueError(
                f"deadline_seconds ({self.deadline_seconds}) is less than quiet_seconds ({self.quiet_seconds}): "
                "no trace could ever be complete"
            )
        return self

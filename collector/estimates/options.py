"""Settings of the estimates."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    series_budget: int = Field(
        5_000,
        ge=100,
        description="Most time series that the weighted sums may take; a segment value that would pass it is "
        "counted as 'other'.",
    )
    min_n_eff_interval: float = Field(
        20, ge=2, description="Effective number of scored interactions from which an interval is drawn."
    )

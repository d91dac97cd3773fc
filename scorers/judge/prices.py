"""What tokens cost: only what the user configured. A model without a price has no cost, never a cost of 0."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field


class Price(BaseModel):
    """The price of one model, in US dollars per million tokens."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_usd_per_million: float = Field(ge=0, description="US dollars per million prompt tokens.")
    output_usd_per_million: float = Field(ge=0, description="US dollars per million completion tokens.")
    cached_input_usd_per_million: float | None = Field(
        default=None, ge=0, description="US dollars per million prompt tokens that the provider had cached."
    )


def cost_usd(
    prices: Mapping[str, Price], model: str, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0
) -> float | None:
    """The cost of one call in US dollars, or None where `model` has no configured price."""
    price = prices.get(model)
    if price is None:
        return None
    cached = min(cached_tokens, input_tokens)
    cached_rate = price.cached_input_usd_per_million
    cached_rate = price.input_usd_per_million if cached_rate is None else cached_rate
    total = (input_tokens - cached) * price.input_usd_per_million + cached * cached_rate
    return (total + output_tokens * price.output_usd_per_million) / 1e6

"""What a user may set about the judge. Secrets are named here, never held: the composition root resolves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from scorers.judge.prices import Price

Url = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^https?://[^\s?#@]+/?$")]

HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")]
HeaderValue = Annotated[str, StringConstraints(pattern=r"^[\x20-\x7e]*$")]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KeyOptions(_Model):
    """Where an API key comes from; at most one source. Read again when the endpoint answers 401."""

    file: Path | None = Field(default=None, description="A file that holds the key, e.g. a mounted secret.")
    env: str | None = Field(default=None, description="The name of an environment variable that holds the key.")
    command: tuple[str, ...] | None = Field(
        default=None, description="A command, without a shell, that prints a fresh key or token."
    )
    refresh_seconds: float = Field(
        default=900, gt=0, description="Seconds after which a file or a command is read again."
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.file, self.env, self.command)) > 1:
            raise ValueError("give one of file, env and command, not several")
        return self


class EmbeddingsOptions(_Model):
    """The embeddings endpoint; needed by response_relevancy only."""

    model: str = Field(min_length=1, description="The embedding model.")
    base_url: Url | None = Field(default=None, description="Its base URL; the judge's own where absent.")
    api_key: KeyOptions | None = Field(
        default=None, description="Its key; where absent the judge's own, but only at the judge's own address."
    )
    batch_size: int = Field(default=64, ge=1, le=2048, description="Texts per request, at most.")


class BudgetPeriod(_Model):
    """Limits of one period; absent is no limit."""

    calls: int | None = Field(default=None, ge=0, description="Judge calls, at most.")
    tokens: int | None = Field(default=None, ge=0, description="Prompt and completion tokens, at most.")
    usd: float | None = Field(default=None, ge=0, description="US dollars, at most; needs prices.")


class BudgetOptions(_Model):
    """A fuse per process: when it blows, results are failed: budget until the period is over (UTC)."""

    hour: BudgetPeriod = Field(default=BudgetPeriod(), description="Limits of an hour.")
    day: BudgetPeriod = Field(default=BudgetPeriod(calls=10_000, usd=1.0), description="Limits of a day.")
    share: float = Field(
        default=1.0, gt=0, le=1, description="This process' share of the limits, where several divide them."
    )


class JudgeOptions(_Model):
    """An OpenAI-compatible judge."""

    name: str = Field(default="judge", pattern=r"^[a-z][a-z0-9_]{0,30}$", description="Its name in metrics.")
    base_url: Url = Field(description="Up to and without /chat/completions, e.g. https://api.openai.com/v1.")
    model: str = Field(
        min_length=1, description="The judge model (Azure: any name when the URL has a deployment)."
    )
    api_key: KeyOptions = Field(
        default=KeyOptions(), description="Where the key comes from; none for local servers."
    )
    api_key_header: str = Field(
        default="authorization",
        pattern=r"^[A-Za-z0-9-]+$",
        description="The header that carries the key; `authorization` sends `Bearer KEY`, Azure's is `api-key`.",
    )
    api_version: str | None = Field(default=None, description="Azure's api-version query parameter.")
    headers: Mapping[HeaderName, HeaderValue] = Field(
        default_factory=dict, description="More headers of every call."
    )
    extra_body: Mapping[str, object] = Field(
        default_factory=dict, description="More fields of every chat request, e.g. reasoning_effort."
    )
    ca_file: Path | None = Field(
        default=None, description="PEM file of certificates to trust beside the system's."
    )
    proxy: str | None = Field(default=None, description="Proxy URL for all calls.")
    proxy_from_env: bool = Field(
        default=True, description="Honour HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."
    )
    embeddings: EmbeddingsOptions | None = Field(default=None, description="The embeddings endpoint.")
    plan: Literal["standard", "fused"] = Field(
        default="standard", description="standard: at most 5 calls an interaction; fused: 2, in larger replies."
    )
    system_role: Literal["system", "developer", "none"] = Field(
        default="system", description="The role of the first message; none for models that know only user."
    )
    temperature: float = Field(default=0.0, ge=0, le=2, description="Sampling temperature.")
    seed: int | None = Field(
        default=7, description="Sampling seed, where the endpoint takes one; null sends none."
    )
    window_tokens: int = Field(
        default=16_000, ge=1024, description="The judge's context window in tokens, prompt and reply together."
    )
    max_output_tokens: int = Field(
        default=2048, ge=128, description="Tokens of one reply, at most; never more than half of window_tokens."
    )
    max_calls: int = Field(
        default=100, ge=1, description="Judge calls for one interaction, re-asks and windows included, at most."
    )
    reasks: int = Field(default=2, ge=0, le=5, description="How often missing answers are asked again.")
    call_timeout_seconds: float = Field(default=60, gt=0, description="Hard limit of one HTTP call.")
    deadline_seconds: float = Field(default=120, gt=0, description="Hard limit of judging one interaction.")
    max_attempts: int = Field(default=5, ge=1, le=10, description="Tries of one call, the first included.")
    backoff_seconds: float = Field(default=0.5, gt=0, description="Longest pause before the second try; doubles.")
    max_backoff_seconds: float = Field(default=20, gt=0, description="Longest pause between tries.")
    start_concurrency: int = Field(default=16, ge=1, description="Calls in flight at the start.")
    max_concurrency: int = Field(default=128, ge=1, le=2048, description="Calls in flight, at most; adapts below.")
    breaker_failures: int = Field(default=10, ge=1, description="Failures in a row that open the circuit breaker.")
    breaker_pause_seconds: float = Field(default=10, gt=0, description="Pause before the breaker's first probe.")
    budget: BudgetOptions = Field(default=BudgetOptions(), description="The fuse.")
    prices: Mapping[str, Price] = Field(
        default_factory=dict, description="Prices by model. A model without one has no cost, not a cost of 0."
    )
    cache_entries: int = Field(default=50_000, ge=0, description="Verdicts in the cache, at most; 0: no cache.")
    cache_ttl_seconds: float = Field(default=86_400, gt=0, description="Life of a cached verdict.")

"""Settings of the status page and the API."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """Who may read the page and the API.

    Bound to loopback they are open. Bound wider they ask for a bearer token (or the same token as the password
    of HTTP Basic, so that a browser can log in); without a configured token they refuse. `/metrics`, `/healthz`
    and `/readyz` carry numbers only and are always open.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_file: Path | None = Field(
        None, description="File with the token for page and API; read again when changed"
    )
    token_env: str | None = Field(None, description="Name of the environment variable with the token instead")
    refresh_seconds: int = Field(5, ge=1, le=3600, description="How often the open page renews itself")

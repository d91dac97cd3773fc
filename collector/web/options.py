"""Settings of the status page, the review pages and the API."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from collector.web.links import BadTemplate, TraceLink

_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")


class Options(BaseModel):
    """Who may read the pages and the API, and who may label.

    Bound to loopback they are open. Bound wider they ask for a bearer token (or the same token as the password of
    HTTP Basic, so that a browser can log in), for a name and password, or for a name that a trusted proxy gives;
    without any of them configured they refuse. Once one is configured it is asked for on loopback too.
    `/metrics`, `/healthz` and `/readyz` carry numbers only and are always open.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    token_file: Path | None = Field(
        None, description="File with the token for page and API; read again when changed"
    )
    token_env: str | None = Field(None, description="Name of the environment variable with the token instead")
    users_file: Path | None = Field(
        None,
        description="File of people who may log in by HTTP Basic, a line each as `python -m collector.web.passwords "
        "NAME` prints it; read again when changed",
    )
    users_env: str | None = Field(None, description="Name of the environment variable with such lines instead")
    proxy_user_header: str | None = Field(
        None,
        description="Header in which a proxy in front names who is logged in (X-Forwarded-User, X-Auth-Request-Email, "
        "...). Believed from `proxy_networks` only; the proxy must set it, or remove it, on every request",
    )
    proxy_networks: tuple[str, ...] = Field(
        (), description="Addresses or networks of that proxy, such as 10.1.2.3 or 10.0.0.0/8"
    )
    allowed_hosts: tuple[str, ...] = Field(
        (),
        description="Names under which the open pages on loopback may be called besides localhost and loopback "
        "addresses; another name is refused, so that a foreign web site can not read them by rebinding its name",
    )
    read_only: bool = Field(False, description="Review cases may be looked at and not labelled or erased")
    trace_link: str | None = Field(
        None,
        description="Address of a trace in your tracing backend, with {trace_id} and, where wanted, {span_id}, "
        "{service}, {session}; values are quoted. Tempo in Grafana: https://grafana.example/explore?left="
        '{"datasource":"tempo","queries":[{"query":"{trace_id}"}]}; Jaeger: '
        "https://jaeger.example/trace/{trace_id}; Langfuse: https://langfuse.example/project/PROJECT/traces/"
        "{trace_id}; Phoenix: https://phoenix.example/redirects/traces/{trace_id}",
    )
    refresh_seconds: int = Field(5, ge=1, le=3600, description="How often the open page renews itself")

    @field_validator("trace_link")
    @classmethod
    def _link(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                TraceLink(value)
            except BadTemplate as error:
                raise ValueError(str(error)) from error
        return value

    @field_validator("proxy_networks")
    @classmethod
    def _networks(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            try:
                ipaddress.ip_network(one, strict=False)
            except ValueError as error:
                raise ValueError(f"{one!r} is no address and no network like 10.0.0.0/8") from error
        return value

    @field_validator("proxy_user_header")
    @classmethod
    def _header(cls, value: str | None) -> str | None:
        if value is not None and not _HEADER.fullmatch(value):
            raise ValueError(f"{value!r} is no name of a header: letters, digits and hyphens")
        return value

    @model_validator(mode="after")
    def _both(self) -> Self:
        if (self.proxy_user_header is None) != (not self.proxy_networks):
            raise ValueError("proxy_user_header and proxy_networks are needed together: whom to believe, and what")
        return self

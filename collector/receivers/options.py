"""What can be set about the receivers."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from collector.receivers.kafka_options import KafkaOptions

MIB = 1024 * 1024


class TlsOptions(BaseModel):
    """Certificate files, PEM."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    cert_file: Path = Field(description="Certificate chain of this server, PEM.")
    key_file: Path = Field(description="Private key of that certificate, PEM, without passphrase.")
    client_ca_file: Path | None = Field(
        default=None,
        description="CA certificates, PEM. When set, clients must present a certificate signed by one.",
    )


class TokenSource(BaseModel):
    """Where bearer tokens are read from: exactly one of `file` and `env`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: Path | None = Field(
        default=None,
        description="File of tokens, one a line; blank lines and lines that start with # are passed over. "
        "Read again when it changes.",
    )
    env: str | None = Field(default=None, description="Name of the environment variable that holds one token.")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.file is None) == (self.env is None):
            raise ValueError("set exactly one of `file` (a path) and `env` (the name of an environment variable)")
        return self


class GrpcOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = Field(default=True, description="Receive OTLP over gRPC.")
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=4317, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    max_concurrent_requests: int = Field(
        default=256,
        ge=1,
        description="Requests being read at a time; more are refused with RESOURCE_EXHAUSTED and RetryInfo. "
        "Times max_request_bytes this bounds the memory that unread requests take.",
    )


class HttpOptions(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="Address to listen on; page, metrics and OTLP share it.")
    port: int = Field(default=4318, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    max_body_bytes_in_progress: int = Field(
        default=128 * MIB,
        ge=1024,
        description="Bytes of bodies being read at a time, over all connections, after decompression. "
        "Requests beyond it get 429 with Retry-After.",
    )


class Options(BaseModel):
    """The receivers; what is not in the section `kafka` is about OTLP over gRPC and HTTP."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grpc: GrpcOptions = Field(default_factory=GrpcOptions, description="The gRPC receiver.")
    http: HttpOptions = Field(default_factory=HttpOptions, description="The HTTP receiver.")
    kafka: KafkaOptions | None = Field(
        default=None, description="Consume topics of Kafka. Needs the extra [kafka]."
    )
    max_request_bytes: int = Field(
        default=16 * MIB, ge=1024, description="Size limit of a request as it is sent, in bytes."
    )
    max_decompressed_bytes: int = Field(
        default=16 * MIB, ge=1024, description="Size limit of a request after decompression, in bytes."
    )
    max_item_bytes: int = Field(
        default=4 * MIB,
        ge=1024,
        description="Size limit of one span or log record, in bytes. A larger one is rejected by itself "
        "(partial success), the rest of its request is taken.",
    )
    request_timeout_seconds: float = Field(
        default=60.0, gt=0, description="Seconds within which the body of a request must have arrived."
    )
    tls: TlsOptions | None = Field(default=None, description="TLS for gRPC and HTTP; absent = plain text.")
    tokens: tuple[TokenSource, ...] = Field(
        default=(), description="Bearer tokens that clients may present; empty = no authentication."
    )

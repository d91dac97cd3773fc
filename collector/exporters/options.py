"""Settings of the exporters."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from collector.exporters.kafka_options import KafkaResultsOptions
from scorers.scorer import Kind


class Protocol(StrEnum):
    GRPC = "grpc"
    HTTP = "http/protobuf"


class Compression(StrEnum):
    NONE = "none"
    GZIP = "gzip"


class OtlpOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    endpoint: str = Field(
        description="Where evaluation events go, as a URL: http://collector:4317 (grpc) or http://collector:4318 "
        "(http/protobuf; /v1/logs is added where the URL has no path). https:// uses TLS. Never taken from "
        "OTEL_EXPORTER_* variables, and never groundwatch itself."
    )
    protocol: Protocol = Field(Protocol.GRPC, description="OTLP transport: grpc or http/protobuf.")
    headers: dict[str, SecretStr] = Field(default_factory=dict, description="Extra headers, e.g. authorization.")
    ca_file: Path | None = Field(
        None, description="PEM file of the authorities to trust; the system's where absent."
    )
    client_certificate_file: Path | None = Field(None, description="PEM file of our certificate for mutual TLS.")
    client_key_file: Path | None = Field(None, description="PEM file of the key of our certificate.")
    compression: Compression = Field(Compression.GZIP, description="Compression of requests: gzip or none.")
    timeout_seconds: float = Field(10, gt=0, description="Longest time for one request, retries included.")
    queue_events: int = Field(
        10_000, ge=1, description="Events that may wait to be sent; more are dropped, and counted."
    )
    batch_events: int = Field(512, ge=1, description="Most events in one request.")
    resources: int = Field(
        64, ge=1, description="Evaluated services' resources kept ready; beyond, the oldest goes."
    )
    kinds: tuple[Kind, ...] = Field(
        (Kind.JUDGED, Kind.LOCAL), min_length=1, description="Which results become events: judged, local."
    )

    @field_validator("endpoint")
    @classmethod
    def _url(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{value!r} is no URL; write http://host:port or https://host:port")
        return value


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    content: bool = Field(
        False,
        description="Let the application's texts (question, contexts, response, and the explanations and evidence that "
        "quote them) out of the process, in events and in the results topic.",
    )
    otlp: OtlpOptions | None = Field(None, description="Evaluation events over OTLP; off where absent.")
    kafka: KafkaResultsOptions | None = Field(
        None,
        description="Results as JSON messages in a topic of Kafka; off where absent. Needs the extra [kafka].",
    )

"""The one error table: why a request is refused, and what each transport answers.

OTLP (opentelemetry.io, "OTLP specification", failures): over gRPC a client retries RESOURCE_EXHAUSTED only when
RetryInfo comes with it, and UNAVAILABLE always; over HTTP it retries 429, 502, 503 and 504, waiting as
Retry-After says; everything else it drops.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from grpc import StatusCode

from collector.otlp import schema


class Reason(StrEnum):
    """Why a request is refused whole; the values are `telemetry.metrics.REFUSED`."""

    UNAUTHENTICATED = "unauthenticated"
    TOO_LARGE = "too_large"
    UNREADABLE = "unreadable"
    UNSUPPORTED = "unsupported"
    MEMORY_FULL = "memory_full"
    SPOOL_FULL = "spool_full"
    SPOOL_FAILING = "spool_failing"
    STARTING = "starting"
    SHUTTING_DOWN = "shutting_down"
    OWN_EVALUATION = "own_evaluation"


@dataclass(frozen=True, slots=True)
class Row:
    """`retryable`: the answer carries a hint of when to try again."""

    http: int
    grpc: StatusCode
    retryable: bool
    message: str


TABLE = MappingProxyType(
    {
        Reason.UNAUTHENTICATED: Row(
            401,
            StatusCode.UNAUTHENTICATED,
            False,
            "no valid bearer token; set the exporter's header `authorization: Bearer TOKEN` to a configured token",
        ),
        Reason.TOO_LARGE: Row(
            413,
            StatusCode.RESOURCE_EXHAUSTED,
            False,
            "the request is over the size limit; send smaller batches or raise receivers.max_request_bytes",
        ),
        Reason.UNREADABLE: Row(400, StatusCode.INVALID_ARGUMENT, False, "the request can not be read"),
        Reason.UNSUPPORTED: Row(415, StatusCode.UNIMPLEMENTED, False, "the request's form is not supported"),
        Reason.MEMORY_FULL: Row(
            429, StatusCode.RESOURCE_EXHAUSTED, True, "no room for more open traces now; try again later"
        ),
        Reason.SPOOL_FULL: Row(
            429,
            StatusCode.RESOURCE_EXHAUSTED,
            True,
            "the spool is full (spool.max_bytes, or the results topic takes nothing): what waits must be settled "
            "first; try again later",
        ),
        Reason.SPOOL_FAILING: Row(
            503, StatusCode.UNAVAILABLE, True, "the spool can not be written, see the log; try again later"
        ),
        Reason.STARTING: Row(
            503, StatusCode.UNAVAILABLE, True, "starting: what the spool holds is read first; try again later"
        ),
        Reason.SHUTTING_DOWN: Row(503, StatusCode.UNAVAILABLE, True, "shutting down; try again later"),
        Reason.OWN_EVALUATION: Row(
            403,
            StatusCode.PERMISSION_DENIED,
            False,
            "this is telemetry of groundwatch's own evaluations, which are not evaluated; "
            "point groundwatch's exporter at another endpoint",
        ),
    }
)

MARKER = "x-groundwatch-evaluation"
"""Header and metadata key that groundwatch puts on its own calls and exports."""


@dataclass(frozen=True, slots=True)
class Refused:
    """One refusal: `message` says more than the table where there is more to say; never secrets, never content."""

    reason: Reason
    message: str = ""
    retry_after_seconds: float = 0.0

    @property
    def row(self) -> Row:
        return TABLE[self.reason]

    @property
    def text(self) -> str:
        return self.message or self.row.message

    @property
    def retry_after_whole_seconds(self) -> int:
        """For Retry-After, which has no fractions; at least 1."""
        return max(1, math.ceil(self.retry_after_seconds))

    def status(self) -> bytes:
        """As google.rpc.Status, with RetryInfo where a retry can help."""
        row = self.row
        code: int = row.grpc.value[0]
        status = schema.Status(code=code, message=self.text.encode())
        if row.retryable:
            whole = int(self.retry_after_seconds)
            info = schema.RetryInfo()
            info.retry_delay.seconds = whole
            info.retry_delay.nanos = int((self.retry_after_seconds - whole) * 1e9)
            status.details.add(
                type_url=b"type.googleapis.com/google.rpc.RetryInfo", value=info.SerializeToString()
            )
        return bytes(status.SerializeToString())

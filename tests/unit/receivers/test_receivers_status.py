"""The error table and what is made of it."""

from __future__ import annotations

from pathlib import Path

from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from collector.receivers import status
from collector.receivers.options import GrpcOptions, HttpOptions, Options, TlsOptions
from collector.receivers.status import TABLE, Reason, Refused
from collector.telemetry.metrics import REFUSED

RETRIED_OVER_HTTP = {429, 502, 503, 504}


def test_the_reasons_are_those_of_the_metric() -> None:
    assert set(REFUSED) == set(Reason) == set(TABLE)


def test_a_row_is_retried_over_both_transports_or_over_none() -> None:
    for reason, row in TABLE.items():
        assert (row.http in RETRIED_OVER_HTTP) is row.retryable, reason
        sent = Status.FromString(Refused(reason, retry_after_seconds=0.5).status())
        assert bool(sent.details) is row.retryable
        assert sent.code == row.grpc.value[0]
        assert sent.message == row.message


def test_hints_are_whole_seconds_for_http_and_exact_for_grpc() -> None:
    refused = Refused(Reason.MEMORY_FULL, retry_after_seconds=2.25)
    assert refused.retry_after_whole_seconds == 3
    assert Refused(Reason.MEMORY_FULL).retry_after_whole_seconds == 1
    info = RetryInfo()
    assert Status.FromString(refused.status()).details[0].Unpack(info)
    assert (info.retry_delay.seconds, info.retry_delay.nanos) == (2, 250_000_000)


def test_every_option_is_described() -> None:
    def check(schema: dict[str, object]) -> None:
        for name, model in {**schema.get("$defs", {}), "Options": schema}.items():  # type: ignore[dict-item]  # JSON
            for field, value in model.get("properties", {}).items():  # an enumeration has none
                assert value.get("description"), f"{name}.{field}"

    check(Options.model_json_schema())


def test_the_readme_has_the_table_and_every_option() -> None:
    readme = Path(status.__file__).with_name("README.md").read_text()
    for reason, row in TABLE.items():
        again = "yes" if row.retryable else "no"
        assert f"| `{reason}` | {row.http} | {row.grpc.name} | {again} |" in readme
    for model, prefix in ((Options, ""), (GrpcOptions, "grpc."), (HttpOptions, "http."), (TlsOptions, "tls.")):
        for name in model.model_fields:
            assert f"`{prefix}{name}" in readme, name

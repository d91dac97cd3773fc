"""The SDK's OTLP log exporters, made from our own options and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from opentelemetry.sdk._logs.export import LogRecordExporter

from collector.exporters.options import Compression, OtlpOptions, Protocol
from scorers.judge.marker import HEADER, HEADER_VALUE


def make_exporter(options: OtlpOptions) -> LogRecordExporter:
    """An exporter for the configured endpoint. Call it at start, before other threads read the environment.

    The SDK's exporters fall back to, and for HTTP headers even add, what OTEL_EXPORTER_* variables say. In a pod
    those describe the application's exporter, which often is groundwatch itself; they are hidden meanwhile. Every
    request carries the header that our receivers refuse, so that a loop through a collector ends there.
    """
    headers = {name.lower(): secret.get_secret_value() for name, secret in options.headers.items()}
    headers[HEADER] = HEADER_VALUE
    with _without_otel_variables():
        return _grpc(options, headers) if options.protocol is Protocol.GRPC else _http(options, headers)


@contextmanager
def _without_otel_variables() -> Iterator[None]:
    hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("OTEL_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _grpc(options: OtlpOptions, headers: dict[str, str]) -> LogRecordExporter:
    import grpc
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter

    secure = urlsplit(options.endpoint).scheme == "https"
    credentials = None
    if secure:
        credentials = grpc.ssl_channel_credentials(
            _bytes(options.ca_file), _bytes(options.client_key_file), _bytes(options.client_certificate_file)
        )
    gzip = options.compression is Compression.GZIP
    return OTLPLogExporter(
        endpoint=options.endpoint,
        insecure=not secure,
        credentials=credentials,
        headers=headers,
        timeout=options.timeout_seconds,
        compression=grpc.Compression.Gzip if gzip else grpc.Compression.NoCompression,
        channel_options=(("grpc.enable_http_proxy", 0),),  # type: ignore[arg-type]  # gRPC takes ints; the SDK's hint does not
    )


def _http(options: OtlpOptions, headers: dict[str, str]) -> LogRecordExporter:
    import requests
    from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter

    session = requests.Session()
    session.trust_env = False  # neither proxies nor .netrc credentials of the surroundings
    url = options.endpoint
    if urlsplit(url).path in ("", "/"):
        url = url.rstrip("/") + "/v1/logs"
    gzip = options.compression is Compression.GZIP
    return OTLPLogExporter(
        endpoint=url,
        certificate_file=_path(options.ca_file),
        client_key_file=_path(options.client_key_file),
        client_certificate_file=_path(options.client_certificate_file),
        headers=headers,
        timeout=options.timeout_seconds,
        compression=HttpCompression.Gzip if gzip else HttpCompression.NoCompression,
        session=session,
    )


def _bytes(path: Path | None) -> bytes | None:
    return path.read_bytes() if path else None


def _path(path: Path | None) -> str | None:
    return str(path) if path else None

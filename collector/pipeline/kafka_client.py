"""How to reach a Kafka cluster: what can be set, the arguments of aiokafka's clients, and why none works.

Mechanism without domain: the receiver and an exporter share it. aiokafka is an extra and is imported only when used.
"""

from __future__ import annotations

import asyncio
import importlib.util
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

Address = Annotated[
    str, StringConstraints(strip_whitespace=True, pattern=r"^(\[[0-9a-fA-F:.]+\]|[^\s:/@]+):\d{1,5}$")
]
TopicName = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

_PACKAGES = ("aiokafka", "cramjam")


class KafkaUnusable(Exception):
    """Kafka is configured and can not be used with what is installed or given; the text says what to change."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Secret(_Model):
    """Where a password is read from: exactly one of `file` and `env`. Read anew at every connection."""

    file: Path | None = Field(default=None, description="File that holds it, e.g. a mounted secret.")
    env: str | None = Field(default=None, description="Name of the environment variable that holds it.")

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.file is None) == (self.env is None):
            raise ValueError("set exactly one of `file` (a path) and `env` (the name of an environment variable)")
        return self

    def read(self, environ: Mapping[str, str], what: str) -> str:
        """The secret. Raises KafkaUnusable, which names `what` it is for and never the secret."""
        if self.file is not None:
            try:
                found = self.file.read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise KafkaUnusable(
                    f"{what}: the file {self.file} can not be read ({type(error).__name__})"
                ) from error
            if not found:
                raise KafkaUnusable(f"{what}: the file {self.file} is empty; write the password into it")
            return found
        found = environ.get(self.env or "", "")
        if not found:
            raise KafkaUnusable(f"{what}: environment variable {self.env} is not set; set it, or name another")
        return found


class SaslOptions(_Model):
    """User and password."""

    mechanism: Mechanism = Field(default="SCRAM-SHA-512", description="PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.")
    username: str = Field(min_length=1, description="User name.")
    password: Secret = Field(description="Password: {file: PATH} or {env: NAME}.")


class KafkaTlsOptions(_Model):
    """TLS to the brokers. Files are PEM."""

    ca_file: Path | None = Field(
        default=None, description="CA certificates that sign the brokers' certificates; absent = the system's."
    )
    cert_file: Path | None = Field(
        default=None, description="Certificate of this client, where brokers ask for one."
    )
    key_file: Path | None = Field(default=None, description="Private key of that certificate.")
    key_password: Secret | None = Field(
        default=None, description="Password of the key file: {file: PATH} or {env: NAME}."
    )
    check_hostname: bool = Field(
        default=True, description="Whether a broker's certificate must name the address that is connected to."
    )

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("give cert_file and key_file together, or neither")
        return self


class KafkaClientOptions(_Model):
    """A cluster, and who we are to it."""

    brokers: tuple[Address, ...] = Field(
        min_length=1, description="Addresses to start from, host:port; the cluster names the others itself."
    )
    client_id: str = Field(
        default="groundwatch", min_length=1, max_length=200, description="Name in the brokers' logs."
    )
    tls: KafkaTlsOptions | None = Field(default=None, description="TLS; absent = plain text.")
    sasl: SaslOptions | None = Field(default=None, description="User and password; absent = none.")
    request_timeout_seconds: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="Seconds after which a request that a broker does not answer fails.",
    )

    @field_validator("brokers", mode="before")
    @classmethod
    def _one_string(cls, value: Any) -> Any:
        """`a:9092,b:9092`, as Kafka's own tools take it."""
        return tuple(part for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def require_kafka() -> None:
    """Raises KafkaUnusable where the packages are missing, without importing them."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise KafkaUnusable(
            f"Kafka needs {' and '.join(missing)}, which {'are' if len(missing) > 1 else 'is'} not installed: "
            "pip install 'groundwatch[kafka]'"
        )


def client_arguments(options: KafkaClientOptions, environ: Mapping[str, str]) -> dict[str, Any]:
    """The arguments that aiokafka's consumer, producer and admin client have in common. Raises KafkaUnusable.

    Files and variables are read now, so that a client that is made later has a secret that was changed.
    """
    arguments: dict[str, Any] = {
        "bootstrap_servers": list(options.brokers),
        "client_id": options.client_id,
        "request_timeout_ms": int(options.request_timeout_seconds * 1000),
        "security_protocol": ("SASL_" if options.sasl else "") + ("SSL" if options.tls else "PLAINTEXT"),
    }
    if options.sasl is not None:
        arguments |= {
            "sasl_mechanism": options.sasl.mechanism,
            "sasl_plain_username": options.sasl.username,
            "sasl_plain_password": options.sasl.password.read(environ, "sasl.password"),
        }
    if options.tls is not None:
        arguments["ssl_context"] = _tls_context(options.tls, environ)
    return arguments


def _tls_context(options: KafkaTlsOptions, environ: Mapping[str, str]) -> ssl.SSLContext:
    password = options.key_password.read(environ, "tls.key_password") if options.key_password else None
    try:
        context = ssl.create_default_context(cafile=options.ca_file)
        if options.cert_file is not None:
            # An empty password instead of none: a key that needs one must not ask at the terminal.
            context.load_cert_chain(options.cert_file, options.key_file, password=password or "")
    except (OSError, ssl.SSLError) as error:
        raise KafkaUnusable(
            f"tls: ca_file, cert_file or key_file can not be used ({type(error).__name__}: {error}); "
            "give readable PEM files, and key_password where the key has one"
        ) from error
    context.check_hostname = options.check_hostname
    return context


async def why_unreachable(arguments: Mapping[str, Any]) -> str:
    """In words, why a client with these arguments can not connect: asked of the brokers one by one.

    aiokafka's clients say only that none of the addresses worked.
    """
    from aiokafka.conn import create_conn
    from aiokafka.errors import KafkaError, SaslAuthenticationFailed

    found: list[str] = []
    for address in arguments["bootstrap_servers"]:
        host, _, port = address.rpartition(":")
        try:
            connection = await create_conn(
                host.strip("[]"),
                int(port),
                client_id=arguments["client_id"],
                request_timeout_ms=min(5_000, arguments["request_timeout_ms"]),
                ssl_context=arguments.get("ssl_context"),
                security_protocol=arguments["security_protocol"],
                sasl_mechanism=arguments.get("sasl_mechanism"),
                sasl_plain_username=arguments.get("sasl_plain_username"),
                sasl_plain_password=arguments.get("sasl_plain_password"),
            )
        except SaslAuthenticationFailed:
            return f"the broker at {address} refuses user name or password; check sasl.username and sasl.password"
        except ssl.SSLError as error:
            return f"TLS with the broker at {address} fails ({error.reason or type(error).__name__}); check tls"
        except (KafkaError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            found.append(f"{address} ({_short(error)})")
        else:
            connection.close()
            return f"the broker at {address} can be reached, but others of its cluster can not"
    return (
        f"no broker answers: {', '.join(found)}; check that brokers are running, and brokers, tls and sasl as "
        "their listener has them"
    )


def _short(error: BaseException) -> str:
    """What kind of failure it is, without the addresses that messages repeat."""
    cause = error.__cause__ or error.__context__
    for one in (error, cause):
        if isinstance(one, ConnectionRefusedError):
            return "connection refused"
        if isinstance(one, TimeoutError):
            return "no answer in time"
    return type(cause or error).__name__

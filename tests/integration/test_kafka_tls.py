"""TLS with client certificates, and user and password inside it, against a real Kafka of its own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import missing
from tests.support import traces
from tests.support.kafka.clients import Sent, make_topics, produce
from tests.support.kafka.cluster import PASSWORD, USER, KafkaCluster
from tests.support.kafka.jars import NoKafka, jars
from tests.support.kafka.member import Member
from tests.support.line import handler

TOPIC = "records"


class Secured:
    """A cluster whose second listener is SASL_SSL and asks for a certificate, and files to get in."""

    def __init__(self, folder: Path, openssl: str) -> None:
        self._folder = folder
        self._openssl = openssl
        self.server, self.server_key = self._pair("server")
        self.client, self.client_key = self._pair("client")
        keystore = folder / "keystore.pem"
        keystore.write_text(self.server_key.read_text() + self.server.read_text())
        self.cluster = KafkaCluster(
            folder / "kafka",
            jars(),
            settings={
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_SSL,CONTROLLER:PLAINTEXT",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": str(keystore),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": str(self.client),
                "listener.name.sasl.ssl.client.auth": "required",
            },
        )

    def _pair(self, name: str) -> tuple[Path, Path]:
        cert, key = self._folder / f"{name}.pem", self._folder / f"{name}.key"
        command = [self._openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        command += ["-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", f"/CN={name}"]
        subprocess.run([*command, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        return cert, key

    def tls(self, **changed: Any) -> dict[str, Any]:
        files = {"ca_file": self.server, "cert_file": self.client, "key_file": self.client_key, **changed}
        return {name: str(path) for name, path in files.items() if path is not None}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, program: Callable[[str], str]) -> Iterator[Secured]:
    openssl = program("openssl")
    try:
        jars()
    except NoKafka as error:
        missing(str(error))
    made = Secured(tmp_path_factory.mktemp("secured"), openssl)
    with made.cluster:
        yield made


async def test_tls_in_both_directions_with_a_password_inside(secured: Secured) -> None:
    await make_topics(secured.cluster.bootstrap, {TOPIC: 1})
    value = {"id": "a", "question": traces.QUESTION, "contexts": [traces.FACT], "response": traces.FACT}
    await produce(secured.cluster.bootstrap, [Sent(TOPIC, json.dumps(value).encode())])
    sasl = {"username": USER, "password": {"env": "SECRET"}}
    handle = handler()

    def member(name: str, tls: dict[str, Any]) -> Member:
        return Member(
            secured.cluster.sasl_bootstrap,
            TOPIC,
            name,
            handle=handle,
            environ={"SECRET": PASSWORD},
            sasl=sasl,
            tls=tls,
            request_timeout_seconds=5,
        )

    well = await member("well", secured.tls()).start()
    try:
        await well.until(lambda: well.ids == ["a"], "the record is settled")
        assert not well.reasons
    finally:
        await well.stop()

    wrong_ca = await member("wrong", secured.tls(ca_file=secured.client)).start()
    try:
        await wrong_ca.until(lambda: "TLS with the broker" in wrong_ca.reasons.get("kafka", ""), "it says so")
    finally:
        await wrong_ca.stop()

    without = await member("without", secured.tls(cert_file=None, key_file=None)).start()
    try:
        await without.until(lambda: "check" in without.reasons.get("kafka", ""), "it says so")
        assert not without.ids
    finally:
        await without.stop()

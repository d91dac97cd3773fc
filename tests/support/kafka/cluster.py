"""Brokers as processes on loopback, each broker and controller in one, ended by pid."""

from __future__ import annotations

import base64
import contextlib
import shutil
import socket
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from collector.demo.processes import environment
from tests.support.waiting import until

HEAP = "-Xmx320m"
USER, PASSWORD = "groundwatch", "right-password"
"""Who may connect to the listener with SASL."""
_QUICK = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Djava.awt.headless=true")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


class Broker:
    """One node: its directory, ports and process. Ports stay over restarts."""

    def __init__(self, number: int, directory: Path) -> None:
        self.number = number
        self.directory = directory
        self.plain, self.sasl, self.controller = _free_ports(3)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"


class KafkaCluster:
    """`brokers` nodes of one cluster in KRaft mode. `settings` are laid over every node's properties."""

    def __init__(
        self, directory: Path, jars: Path, *, brokers: int = 1, settings: Mapping[str, str] | None = None
    ) -> None:
        self._jars = jars
        self._java = shutil.which("java") or "java"
        self.brokers = [Broker(number + 1, directory / f"broker{number + 1}") for number in range(brokers)]
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        for broker in self.brokers:
            broker.directory.mkdir(parents=True)
            self._properties(broker).write_text(
                "".join(f"{key}={value}\n" for key, value in self._settings(broker, settings or {}).items()),
                encoding="utf-8",
            )
            self._format(broker, cluster)

    @property
    def bootstrap(self) -> str:
        """Addresses of the listeners without authentication."""
        return ",".join(f"127.0.0.1:{broker.plain}" for broker in self.brokers)

    @property
    def sasl_bootstrap(self) -> str:
        """Addresses of the listeners that ask for user and password."""
        return ",".join(f"127.0.0.1:{broker.sasl}" for broker in self.brokers)

    def _properties(self, broker: Broker) -> Path:
        return broker.directory / "server.properties"

    def _settings(self, broker: Broker, settings: Mapping[str, str]) -> dict[str, str]:
        copies = str(min(3, len(self.brokers)))
        login = f'username="{USER}" password="{PASSWORD}"'
        plain = (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required {login} user_{USER}="{PASSWORD}";'
        )
        scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        return {
            "process.roles": "broker,controller",
            "node.id": str(broker.number),
            "controller.quorum.voters": ",".join(f"{b.number}@127.0.0.1:{b.controller}" for b in self.brokers),
            "listeners": f"PLAINTEXT://127.0.0.1:{broker.plain},SASL://127.0.0.1:{broker.sasl},"
            f"CONTROLLER://127.0.0.1:{broker.controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{broker.plain},SASL://127.0.0.1:{broker.sasl}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": ",".join(_MECHANISMS),
            "listener.name.sasl.plain.sasl.jaas.config": plain,
            **{f"listener.name.sasl.{m.lower()}.sasl.jaas.config": scram for m in _MECHANISMS[1:]},
            "log.dirs": str(broker.directory / "data"),
            "auto.create.topics.enable": "false",
            "num.partitions": "1",
            "default.replication.factor": copies,
            "min.insync.replicas": "1",
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": copies,
            "share.coordinator.state.topic.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": copies,
            "transaction.state.log.num.partitions": "1",
            "transaction.state.log.replication.factor": copies,
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
            "group.min.session.timeout.ms": "1000",
            "log.cleaner.enable": "false",
            "log.cleaner.dedupe.buffer.size": "8388608",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "background.threads": "2",
            "controlled.shutdown.enable": "true",
            **settings,
        }

    def _format(self, broker: Broker, cluster: str) -> None:
        """Write the identity of the cluster and the users of SCRAM into the node's directory."""
        users = [f"{m}=[name={USER},password={PASSWORD}]" for m in _MECHANISMS[1:]]
        done = subprocess.run(
            [
                *self._command("kafka.tools.StorageTool", broker),
                "format",
                f"--cluster-id={cluster}",
                f"--config={self._properties(broker)}",
                *(part for user in users for part in ("--add-scram", user)),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=environment({}),
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _command(self, main: str, broker: Broker) -> list[str]:
        log = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        return [self._java, HEAP, *_QUICK, log, "-cp", f"{self._jars}/*", main]

    def start(self) -> KafkaCluster:
        """Start every node and wait until all take connections and know each other."""
        for broker in self.brokers:
            self.start_broker(broker.number, wait=False)
        for broker in self.brokers:
            self._wait(broker)
        return self

    def start_broker(self, number: int, *, wait: bool = True) -> None:
        """Start one node (from 1), which may have been stopped or killed before."""
        broker = self.brokers[number - 1]
        with broker.log.open("ab") as log:
            broker.process = subprocess.Popen(
                [*self._command("kafka.Kafka", broker), str(self._properties(broker))],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment({}),
                start_new_session=True,
            )
        if wait:
            self._wait(broker)

    def _wait(self, broker: Broker) -> None:
        process = broker.process
        assert process is not None

        def listens() -> bool:
            assert process.poll() is None, broker.log.read_text(encoding="utf-8", errors="replace")[-4000:]
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", broker.sasl), 1):
                return True
            return False

        until(listens, f"broker {broker.number} takes connections", seconds=60)

    def stop_broker(self, number: int) -> None:
        """An orderly stop of one node."""
        process = self.brokers[number - 1].process
        if process is not None and process.poll() is None:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)

    def kill_broker(self, number: int) -> None:
        """kill -9."""
        process = self.brokers[number - 1].process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait(10)

    def end(self) -> None:
        """End all nodes; their data goes with their directory."""
        for broker in self.brokers:
            self.kill_broker(broker.number)

    def __enter__(self) -> KafkaCluster:
        try:
            return self.start()
        except BaseException:
            self.end()
            raise

    def __exit__(self, *_: object) -> None:
        self.end()


def _free_ports(count: int) -> list[int]:
    """Ports that are free now; held together, so that they differ."""
    with contextlib.ExitStack() as stack:
        ports = []
        for _ in range(count):
            listener = stack.enter_context(socket.socket())
            listener.bind(("127.0.0.1", 0))
            ports.append(listener.getsockname()[1])
        return ports

"""A receiver with the stages behind it in this process, against a real Kafka: a member of a group without a process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any

from collector.receivers.kafka import KafkaReceiver
from collector.receivers.kafka_options import KafkaOptions
from collector.telemetry.events import Events
from collector.telemetry.spec import MetricSpec
from tests.support.line import Handle, Line

QUICK: dict[str, Any] = {
    "start": "earliest",
    "commit_seconds": 0.2,
    "session_timeout_seconds": 6,
    "heartbeat_seconds": 0.3,
}
LOG = "tests.kafka.member"


class Member:
    """One member. Its clock is moved by `until`, so that quiet periods take no time."""

    def __init__(
        self,
        bootstrap: str,
        topics: Any,
        group: str,
        *,
        handle: Handle,
        environ: Mapping[str, str] | None = None,
        line: Line | None = None,
        fill: Callable[[], float] = lambda: 0.0,
        most: int = 1_000,
        **options: Any,
    ) -> None:
        self.line = line if line is not None else Line(handle)
        self.reasons: dict[str, str] = {}
        self.said: list[str] = []
        self.settles = 0
        self.receiver = KafkaReceiver(
            KafkaOptions.model_validate(
                {**QUICK, "brokers": bootstrap, "topics": topics, "group_id": group, **options}
            ),
            environ=environ or {},
            border=self.line.border,
            records=self.line.screening.accept,
            fill=fill,
            most=most,
            decided=self._decided,
            settle=self._settle,
            health=self._health,
            clock=self.line.clock,
            telemetry=self.line.telemetry,
            events=Events(self.line.telemetry, self.line.clock, logging.getLogger(LOG)),
        )

    async def _settle(self) -> None:
        self.settles += 1

    def _decided(self) -> None:
        self.line.assembler.drop_lost()
        self.line.judging.drop_lost()
        self.line.flow.decided()

    def _health(self, component: str, reason: str | None) -> None:
        if reason is None:
            self.reasons.pop(component, None)
        elif self.reasons.get(component) != reason:
            self.reasons[component] = reason
            self.said.append(reason)

    async def start(self) -> Member:
        await self.line.screening.start()
        await self.receiver.start()
        return self

    @property
    def ids(self) -> list[str]:
        """Interactions that were settled here."""
        return [one.found.interaction.id for one in self.line.settled]

    def count(self, spec: MetricSpec, **labels: str) -> float:
        value = self.line.telemetry.registry.get_sample_value(spec.name, labels)
        assert value is not None, (spec.name, labels)
        return value

    async def until(self, condition: Callable[[], Any], what: str, *, seconds: float = 30.0) -> None:
        """Let time pass here until the condition holds; real time only for the brokers."""
        await until([self], condition, what, seconds=seconds)

    async def stop(self) -> None:
        """As at SIGTERM."""
        await self.receiver.stop_polling(5)
        self.line.assembler.begin_drain()
        self.line.assembler.drain()
        await self.line.screening.stop(1)
        await self.line.judging.drain(0)
        await self.receiver.close(10)

    async def crash(self) -> None:
        """Stop without a commit."""
        await self.receiver.stop_polling(5)
        self.receiver._group.placed.clear()  # what has no place is not committed
        await self.receiver.close(10)
        await self.line.screening.stop(0)
        await self.line.judging.drain(0)


async def until(
    members: list[Member], condition: Callable[[], Any], what: str, *, seconds: float = 30.0, step: float = 1.0
) -> None:
    """Time passes for all of them, `step` seconds at a time, until the condition holds."""
    try:
        async with asyncio.timeout(seconds):
            while not condition():
                for member in members:
                    await member.line.pass_time(step)
                await asyncio.sleep(0.02)
    except TimeoutError:
        told = [(member.reasons, len(member.ids)) for member in members]
        raise AssertionError(f"after {seconds:.0f} s still not: {what} ({told})") from None

"""The review put together: its store, what picks cases for it, and the way in for users' feedback."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from collector.config import Config
from collector.extract.redaction import Redactor, pseudonym
from collector.parts import StartError
from collector.pipeline.clock import Clock
from collector.records.batch import Intake
from collector.review.build import Builder
from collector.review.feedback import FeedbackIntake
from collector.review.feedback_events import FeedbackEvents
from collector.review.picker import Picker, Puts
from collector.review.query import Erased, Subject
from collector.review.sqlite import SqliteStore
from collector.review.store import StoreUnavailable
from collector.sampling.hashing import Uniform
from collector.telemetry.events import Events
from collector.telemetry.instruments import Telemetry
from collector.web.review.site import Review
from scorers.catalog import DEFAULT_JUDGED, make_judged, options_of
from scorers.local import describe as describe_local
from scorers.scorer import Direction, Tier

FILE_NAME = "review.sqlite"
_WRITTEN_SECONDS = 5.0
_DESCRIPTIVE = ("context_count",)
"""Metrics that are neither good nor bad."""


@dataclass(frozen=True, slots=True)
class Reviewing:
    """The parts of the review. `erase` erases a subject in the store and in memory."""

    store: SqliteStore
    picker: Picker
    feedback: FeedbackIntake
    clock: Clock
    seed: str
    feedback_names: tuple[str, ...]

    @property
    def site(self) -> Review:
        """What the pages and the API are given."""
        return Review(self.store, self.clock, erase=self.erase, feedback=self.feedback)

    def listening(self, intake: Intake) -> Intake:
        """An intake that reads users' feedback out of the log events it hands on."""
        return FeedbackEvents(intake, self.feedback, names=self.feedback_names)

    async def start(self) -> None:
        """Open the store. Raises StartError."""
        try:
            await asyncio.to_thread(self.store.open)
        except StoreUnavailable as error:
            raise StartError(str(error)) from error

    async def written(self) -> None:
        """Wait until the cases of all that was settled before are written, or can not be, which the store counts."""
        try:
            await asyncio.to_thread(self.store.flush, _WRITTEN_SECONDS)
        except StoreUnavailable:
            return

    async def stop(self, _: float) -> None:
        await asyncio.to_thread(self.store.close)

    def erase(self, subject: Subject) -> Erased:
        """By the application's id: the hash that redaction made of it is erased, too."""
        subject = replace(subject, also=(*subject.also, pseudonym(self.seed, subject.id)))
        self.picker.forget(subject)
        erased = self.store.erase(subject)
        self.picker.forget(subject)  # one that was settled meanwhile
        return erased


def store_path(config: Config) -> Path | None:
    """Where the cases are kept; None where the review is off."""
    if not config.review.enabled:
        return None
    if config.review.path is not None:
        return config.review.path
    return config.process.state_dir / FILE_NAME if config.process.state_dir is not None else None


def reviewing_of(
    config: Config,
    *,
    directions: Mapping[str, Direction],
    beside: Collection[str],
    clock: Clock,
    telemetry: Telemetry,
    events: Events,
) -> Reviewing | None:
    """None where the review is off. `beside` are the metrics of a shadow judge."""
    path = store_path(config)
    if path is None:
        return None
    store = SqliteStore(path, config.review, clock=clock, telemetry=telemetry, events=events)
    picker = picker_of(
        config,
        store=store,
        judging=config.judge is not None,
        clock=clock,
        telemetry=telemetry,
        directions=directions,
        beside=beside,
    )
    redactor = Redactor(config.extract.redaction, seed=config.seed)
    feedback = FeedbackIntake(picker, store, clock, redact=redactor.text)
    return Reviewing(store, picker, feedback, clock, config.seed, config.review.feedback_names)


def directions_of(config: Config) -> dict[str, Direction]:
    """Of the metrics that a sidecar with this configuration has, or with the default judge where it names none.
    Raises ScorerError."""
    options = config.judge.scorers if config.judge is not None else tuple(map(options_of, DEFAULT_JUDGED))
    infos = [*describe_local(config.screening.scorers, Tier.FAST), *(make_judged(one).info for one in options)]
    return {metric: info.direction for info in infos for metric in info.gives}


def picker_of(
    config: Config,
    *,
    store: Puts,
    judging: bool,
    clock: Clock,
    telemetry: Telemetry,
    directions: Mapping[str, Direction],
    beside: Collection[str] = (),
) -> Picker:
    """What picks cases by this configuration."""
    lower = (metric for metric, direction in directions.items() if direction is Direction.LOWER_IS_BETTER)
    return Picker(
        config.review.pick,
        store=store,
        builder=Builder(
            lower_is_better=frozenset(lower),
            descriptive=frozenset((*_DESCRIPTIVE, *beside)),
            prompt_versions=config.estimates.changes.prompt_version_attributes,
            judge_model=config.judge.model if config.judge is not None else None,
        ),
        chance=Uniform(config.seed, "review.control"),
        judging=judging,
        clock=clock,
        telemetry=telemetry,
    )

"""The root of the configuration: the stages' own models, composed."""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from collector.assembly.options import Options as Assembly
from collector.estimates.options import Options as Estimates
from collector.exporters.options import Options as Export
from collector.extract.options import Options as Extract
from collector.judging.options import Options as Judging
from collector.pipeline.kafka_client import KafkaClientOptions
from collector.pipeline.options import BooksOptions, SpoolOptions
from collector.receivers.options import Options as Receivers
from collector.review.options import Options as Review
from collector.sampling.options import Options as Sampling
from collector.screening.options import Options as Screening
from collector.web.options import Options as Web
from scorers.catalog import DEFAULT_JUDGED, options_of
from scorers.config import ScorerOptions
from scorers.errors import UnknownScorer
from scorers.judge.options import JudgeOptions


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Durability(StrEnum):
    MEMORY = "memory"
    SPOOL = "spool"


class Sync(StrEnum):
    NORMAL = "normal"
    FULL = "full"


class Process(BaseModel):
    """The process itself."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    log_level: LogLevel = Field(
        LogLevel.INFO, description="Least level that is logged: debug, info, warning, error."
    )
    log_format: LogFormat = Field(LogFormat.TEXT, description="text for people, json for machines.")
    grace_seconds: float = Field(
        25,
        ge=0,
        description="Time to drain after SIGTERM; keep it under the orchestrator's own (Kubernetes: 30 s).",
    )
    state_dir: Path | None = Field(
        None,
        description="Directory for what outlives the process: the books (which interactions were counted, and the "
        "sums, so that metrics go on after a restart), the spool, and the mark by which the next start tells an "
        "unclean end. Locked against a second process.",
    )
    durability: Durability = Field(
        Durability.MEMORY,
        description="When OTLP is acknowledged. memory: when its spans are held in memory. spool: when those with a "
        "hint are in the spool, too, so that what was acknowledged survives a crash (needs state_dir). The spool holds "
        "spans as they arrived, before redaction.",
    )
    sync: Sync = Field(
        Sync.NORMAL,
        description="normal: what is written to state_dir survives the end of the process. full: a loss of power, too; "
        "each commit then waits for the disk.",
    )
    decision_ring: int = Field(10_000, ge=0, description="Decisions remembered for `groundwatch why`.")

    @model_validator(mode="after")
    def _somewhere_to_spool(self) -> Self:
        if self.durability is Durability.SPOOL and self.state_dir is None:
            raise ValueError(
                "durability: spool needs a directory to write to: set state_dir to one that outlives the process "
                "(in a pod: a volume), or durability to memory"
            )
        return self


class _Asked(JudgeOptions):
    """A judge, and what it is asked."""

    scorers: tuple[ScorerOptions, ...] = Field(
        tuple(options_of(name) for name in DEFAULT_JUDGED),
        description="What is judged: names, or mappings with `type` and that scorer's settings.",
    )

    @field_validator("scorers", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        """A name alone stands for that scorer with its defaults."""
        if not isinstance(value, list | tuple):
            return value
        if not value:
            raise ValueError("list one scorer at least, or leave scorers out for the defaults")
        try:
            return tuple(options_of(one) if isinstance(one, str) else one for one in value)
        except UnknownScorer as error:
            raise ValueError(str(error)) from error


class Shadow(_Asked):
    """A second judge beside the first, on the same interactions."""

    name: str = Field("shadow", pattern=r"^[a-z][a-z0-9_]{0,30}$", description="Its name in metrics of calls.")


class Judge(_Asked):
    """The judge, and what it is asked."""

    shadow: Shadow | None = Field(
        None,
        description="A second judge that is asked about the same interactions, to compare two models, prompts or "
        "plans on live traffic. What is not set here is as in the judge's own section; the budget is shared. Its "
        "metrics are called like the judge's with `_shadow` behind.",
    )

    @model_validator(mode="before")
    @classmethod
    def _shadow_inherits(cls, values: Any) -> Any:
        """Settings that the shadow does not name are the judge's; its key and headers only at the same address."""
        if not isinstance(values, dict) or not isinstance(values.get("shadow"), dict):
            return values
        own = values["shadow"]
        if "budget" in own:
            raise ValueError("shadow.budget: the budget is shared; set judge.budget for both together")
        given = {name: value for name, value in values.items() if name not in ("shadow", "name", "budget")}
        here, there = (urlsplit(str(part.get("base_url", ""))).netloc for part in ({**given, **own}, given))
        if here != there:
            embeddings = given.get("embeddings")
            if isinstance(embeddings, dict) and not embeddings.get("base_url"):
                key = {"api_key": given["api_key"]} if "api_key" in given else {}
                given["embeddings"] = {"base_url": given.get("base_url"), **key, **embeddings}
            given = {name: value for name, value in given.items() if name not in _OF_ONE_ADDRESS}
        return {**values, "shadow": {**given, **own}}

    @model_validator(mode="after")
    def _two_names(self) -> Self:
        if self.shadow is not None and self.shadow.name == self.name:
            raise ValueError(f"shadow.name: {self.name!r} is the judge's own name")
        return self


_OF_ONE_ADDRESS = ("api_key", "api_key_header", "api_version", "headers", "extra_body", "ca_file")
"""Settings of the judge that mean its endpoint, and are not for another's."""
_BUDGET_FIELDS = {"calls": "calls_per_day", "usd": "usd_per_day"}
"""The day's limits as the judge calls them, and as sampling does."""
DEFAULT_DAY = {"calls": 10_000, "usd": 1.0}


class Config(BaseModel):
    """Everything that can be set. Every setting has a default; no file is needed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    bind: str = Field(
        "127.0.0.1",
        description="Address of all listeners, where a receiver does not name its own. Beyond loopback the page and "
        "the API ask for a token (web.token_file); OTLP, /metrics and health do not.",
    )
    seed: str = Field(
        "groundwatch",
        min_length=1,
        description="Key of all sampling hashes. Replicas of one application share it, so that they agree.",
    )
    receivers: Receivers = Field(default_factory=Receivers, description="OTLP and Kafka in.")
    assembly: Assembly = Field(default_factory=Assembly, description="Spans to traces.")
    extract: Extract = Field(default_factory=Extract, description="Traces to interactions.")
    screening: Screening = Field(default_factory=Screening, description="Local scores on every interaction.")
    sampling: Sampling = Field(default_factory=Sampling, description="Which interactions are judged.")
    judge: Judge | None = Field(None, description="The LLM judge; nothing is judged without this section.")
    judging: Judging = Field(default_factory=Judging, description="The queue in front of the judge.")
    estimates: Estimates = Field(default_factory=Estimates, description="Weighted sums and intervals.")
    export: Export = Field(default_factory=Export, description="Events and results out; /metrics is always on.")
    books: BooksOptions = Field(default_factory=BooksOptions, description="What process.state_dir remembers.")
    spool: SpoolOptions = Field(default_factory=SpoolOptions, description="With process.durability: spool.")
    review: Review = Field(default_factory=Review, description="Cases for people to look at.")
    web: Web = Field(default_factory=Web, description="Status page and API.")
    process: Process = Field(default_factory=Process, description="Logging, grace time, state.")

    @model_validator(mode="before")
    @classmethod
    def _bind_receivers(cls, values: Any) -> Any:
        """`bind` is the host of each receiver that does not name one."""
        if not isinstance(values, dict) or "bind" not in values:
            return values
        receivers = values.get("receivers") or {}
        if not isinstance(receivers, dict):
            return values
        hosts = {
            name: {"host": str(values["bind"]), **(receivers.get(name) or {})}
            for name in ("grpc", "http")
            if isinstance(receivers.get(name) or {}, dict)
        }
        return {**values, "receivers": {**receivers, **hosts}}

    @model_validator(mode="before")
    @classmethod
    def _one_budget(cls, values: Any) -> Any:
        """The day's budget is set once: by sampling, which lowers the rate in time, or by the judge, whose limit is
        the fuse behind it. Where only one of the two is given it is the other's too."""
        if not isinstance(values, dict) or not isinstance(values.get("judge"), dict):
            return values
        judge, sampling = values["judge"], values.get("sampling") or {}
        if not isinstance(sampling, dict):
            return values
        day = (judge.get("budget") or {}).get("day") if isinstance(judge.get("budget") or {}, dict) else None
        own = sampling.get("budget")
        if isinstance(day, dict) and own is None:
            given = {theirs: day[ours] for ours, theirs in _BUDGET_FIELDS.items() if ours in day}
            return {**values, "sampling": {**sampling, "budget": given}}
        if isinstance(own, dict) and judge.get("budget") is None:
            given = {ours: own[theirs] for ours, theirs in _BUDGET_FIELDS.items() if theirs in own}
            fuse = {**DEFAULT_DAY, **given}
            share = {"share": own["share"]} if "share" in own else {}
            return {**values, "judge": {**judge, "budget": {"day": fuse, **share}}}
        return values

    @model_validator(mode="before")
    @classmethod
    def _one_cluster(cls, values: Any) -> Any:
        """The results topic is in the cluster that is consumed, where it names no brokers of its own."""
        if not isinstance(values, dict):
            return values
        there = (values.get("receivers") or {}).get("kafka") if isinstance(values.get("receivers"), dict) else None
        export = values.get("export")
        here = export.get("kafka") if isinstance(export, dict) else None
        if not isinstance(there, dict) or not isinstance(here, dict) or "brokers" in here:
            return values
        shared = {name: there[name] for name in KafkaClientOptions.model_fields if name in there}
        return values | {"export": values["export"] | {"kafka": shared | here}}

    @model_validator(mode="after")
    def _no_loop(self) -> Self:
        """Results are never read again as what is to be judged. Clusters have many addresses, so names decide."""
        source, results = self.receivers.kafka, self.export.kafka
        if source is None or results is None:
            return self
        taken = {topic.name for topic in source.topics}
        if source.dead_letter is not None:
            taken.add(source.dead_letter.topic)
        if results.topic in taken:
            raise ValueError(
                f"export.kafka.topic: {results.topic!r} is a topic that is consumed, or the dead-letter topic; results "
                "need one of their own"
            )
        return self

    @property
    def loopback(self) -> bool:
        """True when page and API can be reached from this machine only."""
        host = self.receivers.http.host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

"""A case: one interaction kept for a person to look at, with everything that is known of it.

The values here are what the store keeps, as JSON; fields may be added with a default, never renamed or removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from sys import getsizeof

from collector.records.decision import Fate
from collector.records.diagnosis import Diagnosis
from collector.review.labels import Label, Labelled, in_effect
from scorers.interaction import Interaction
from scorers.outcome import Usage, Verdict
from scorers.scorer import Kind


class Reason(StrEnum):
    """Why an interaction became a case. Bounded, so it is a metric label."""

    CONTROL = "control"  # uniform, by keyed hash with a known probability: the only one that estimates may use
    LOW_SCORE = "low_score"
    DISAGREEMENT = "disagreement"  # the local and the judged score of one quality are far apart
    JUDGE_NOISE = "judge_noise"  # judged twice, with scores far apart
    DIAGNOSIS = "diagnosis"  # its cause is one that wants looking at
    FEEDBACK = "feedback"  # a user said something about it
    INGESTED = "ingested"  # a record of another process or file that does not say why it was kept


class OutcomeKind(StrEnum):
    SCORED = "scored"
    NOT_APPLICABLE = "not_applicable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Pick:
    """One reason for which the case was kept.

    `probability` is the probability with which this reason would have kept it, in (0, 1]: None where it is not
    known, and then the case stays out of every estimate. `order` is its place in the order drawn, uniform in
    [0, 1): those below t are a random share t of what was kept. `at_unix` is when it was picked.
    """

    reason: Reason
    at_unix: float
    probability: float | None = None
    order: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """One scorer's outcome, as `scorers.outcome.Result` has it, in a form that is plain JSON.

    `score` is None unless `outcome` is *scored*; `reason` is None if it is. `evidence` and `verdicts` quote the
    interaction. `quality` is False for what describes the interaction and is neither good nor bad.
    """

    metric: str
    kind: str
    outcome: OutcomeKind
    tier: str | None = None
    score: float | None = None
    raw: float | None = None
    label: str | None = None
    reason: str | None = None
    detail: str = ""
    version: str = ""
    fingerprint: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    verdicts: tuple[Verdict, ...] = ()
    flags: tuple[str, ...] = ()
    usage: Usage | None = None
    attempt: int = 0
    probability: float = 1.0
    lower_is_better: bool = False
    quality: bool = True

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """The result key within its interaction: one instrument's one try."""
        return self.metric, self.kind, self.tier or "", self.fingerprint, self.attempt


@dataclass(frozen=True, slots=True)
class CaseDecision:
    """Whether it was judged: see `collector.records.decision.Decision`, of which this is what is kept."""

    fate: Fate
    probability: float
    policy: str
    upstream_weight: float = 1.0
    conditional: bool = False

    @property
    def weight(self) -> float:
        return self.upstream_weight / self.probability


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an interaction came from. Ids of sessions and users are what redaction made of them."""

    service: str = ""
    service_version: str | None = None
    prompt_version: str | None = None
    environment: str | None = None
    model: str | None = None
    convention: str = ""
    trace_ids: tuple[str, ...] = ()
    span_id: str = ""
    response_id: str | None = None
    session: str | None = None
    user: str | None = None
    tenant: str | None = None
    error: str | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a user of the application said about an answer.

    `score` is in [0, 1] where 1 is best (a thumb up is 1, a thumb down 0), None where only words were given.
    """

    at_unix: float
    score: float | None = None
    comment: str = ""
    source: str = "api"
    name: str = "user_feedback"


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `id` is the interaction id: an interaction that is picked twice is one case with two picks.

    `revision` counts what people did to it, and belongs to the store; `labels` are all that were ever given, oldest
    first, with those that were undone.
    """

    id: str
    interaction: Interaction
    picks: tuple[Pick, ...]
    ended_unix: float
    results: tuple[CaseResult, ...] = ()
    decision: CaseDecision | None = None
    screening_probability: float = 1.0
    diagnosis: Diagnosis | None = None
    marks: tuple[str, ...] = ()
    segments: Mapping[str, str] = field(default_factory=dict)
    origin: Origin = field(default_factory=Origin)
    judge_model: str | None = None
    feedback: tuple[Feedback, ...] = ()
    stored_unix: float = 0.0
    revision: int = 0
    labels: tuple[Label, ...] = ()

    @property
    def control(self) -> Pick | None:
        """The pick with a known probability; None for a case that estimates must not use."""
        known = (pick for pick in self.picks if pick.probability is not None)
        return min(known, key=lambda pick: pick.reason is not Reason.CONTROL, default=None)

    @property
    def probability(self) -> float | None:
        """pi: the probability of being kept for labelling, given that it was judged (screened, without a judge)."""
        return self.control.probability if self.control is not None else None

    @property
    def weight(self) -> float:
        """What a judged result counts for: upstream weight / (probability of being judged x of being screened)."""
        return (self.decision.weight if self.decision is not None else 1.0) / self.screening_probability

    @property
    def local_weight(self) -> float:
        """What a local result of the fast tier counts for."""
        upstream = self.decision.upstream_weight if self.decision is not None else 1.0
        return upstream / self.screening_probability

    @property
    def cost_usd(self) -> float | None:
        """What judging it cost; None where no price is known."""
        known = [one.usage.cost_usd for one in self.results if one.usage and one.usage.cost_usd is not None]
        return sum(known) if known else None

    @property
    def lowest(self) -> float | None:
        """The least score of those where more is better: of the judge's, else of the local ones; first tries only."""
        scored = [
            one
            for one in self.results
            if one.score is not None and one.quality and not one.lower_is_better and not one.attempt
        ]
        judged = [one for one in scored if one.kind == Kind.JUDGED]
        return min((one.score for one in judged or scored if one.score is not None), default=None)

    @property
    def in_effect(self) -> Labelled:
        """What people say of it now."""
        return in_effect(self.labels)

    def score(self, metric: str, kind: str | None = None) -> float | None:
        """The first try's score of a metric, the judged one before the local one where `kind` is not given."""
        found = {one.kind: one.score for one in self.results if one.metric == metric and one.attempt == 0}
        if kind is not None:
            return found.get(kind)
        judged = found.get(Kind.JUDGED)
        return judged if judged is not None else found.get(Kind.LOCAL)


def text_bytes(interaction: Interaction) -> int:
    """About the bytes of memory that its texts take, those in its passages' metadata too."""
    passages = interaction.contexts or ()
    texts = [interaction.question, interaction.response, interaction.reference]
    texts += [passage.text for passage in passages] + [turn.text for turn in interaction.history]
    return sum(getsizeof(text) for text in texts if text) + sum(_bytes_of(one.metadata) for one in passages)


def _bytes_of(value: object) -> int:
    """Redaction lets values be 16 levels deep at most."""
    if isinstance(value, Mapping):
        return sum(_bytes_of(key) + _bytes_of(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_bytes_of, value))
    return getsizeof(value)


def merge(old: Case, new: Case) -> Case:
    """One case of two deliveries of the same interaction: picks, marks and feedback of both, results of both with
    the newer one of each key. What people did to it is the old one's; the rest is the newer delivery's."""
    results = {one.key: one for one in old.results} | {one.key: one for one in new.results}
    picks = {pick.reason: pick for pick in (*new.picks, *old.picks)}
    return Case(
        id=old.id,
        interaction=new.interaction,
        picks=tuple(sorted(picks.values(), key=lambda pick: pick.at_unix)),
        ended_unix=new.ended_unix or old.ended_unix,
        results=tuple(results.values()),
        decision=new.decision or old.decision,
        screening_probability=new.screening_probability if new.decision is not None else old.screening_probability,
        diagnosis=new.diagnosis or old.diagnosis,
        marks=tuple(sorted({*old.marks, *new.marks})),
        segments=new.segments or old.segments,
        origin=new.origin,
        judge_model=new.judge_model or old.judge_model,
        feedback=tuple(dict.fromkeys((*old.feedback, *new.feedback)))[-MAX_FEEDBACK:],
        stored_unix=old.stored_unix,
        revision=old.revision,
        labels=old.labels,
    )


MAX_FEEDBACK = 50
"""Pieces of feedback kept on one case, the newest."""

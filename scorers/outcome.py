"""What scoring an interaction gives: a score, or the reason why there is none. Unscored is never a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from scorers.scorer import Kind, Tier


class NotApplicableReason(StrEnum):
    """The metric is not defined on this interaction; it leaves the estimate's domain."""

    REFUSAL = "refusal"
    NO_CLAIMS = "no_claims"
    NO_CONTEXTS = "no_contexts"  # contexts are not known for this interaction (a chat, or not captured)
    NO_QUESTION = "no_question"
    NO_RESPONSE = "no_response"
    NO_REFERENCE = "no_reference"
    NO_HISTORY = "no_history"
    APPLICATION_ERROR = "application_error"  # the application's own call failed; there is no answer to judge
    LANGUAGE = "language"  # the scorer does not work in this language and says so
    OWN_EVALUATION = "own_evaluation"  # a call of groundwatch's own judge; evaluations are never evaluated


class FailedReason(StrEnum):
    """The metric is defined but could not be measured; missing data, counted against coverage."""

    INCOMPLETE = "incomplete"  # a needed part is hidden, cut, dropped or unsplit
    DEADLINE = "deadline"
    EXPIRED = "expired"  # waited in the queue for longer than max_age
    BAD_REPLY = "bad_reply"  # the judge's reply was unusable, after re-asking
    JUDGE_AUTH = "judge_auth"
    JUDGE_QUOTA = "judge_quota"
    JUDGE_MODEL_UNKNOWN = "judge_model_unknown"
    JUDGE_OVERLOADED = "judge_overloaded"
    JUDGE_UNREACHABLE = "judge_unreachable"
    JUDGE_REFUSED = "judge_refused"  # the endpoint rejects this content (filter, 400)
    BUDGET = "budget"  # the fuse blew
    QUEUE_FULL = "queue_full"  # dropped with an unknown probability
    SHUTDOWN = "shutdown"  # drained at the end of the grace time
    SCORER_ERROR = "scorer_error"  # a bug in a scorer; logged with its traceback


class Label(StrEnum):
    """A judge's verdict on one claim or sentence."""

    SUPPORTED = "supported"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim (or response sentence) with its label, the reason given, and the ranks of passages it rests on: from 1
    where a judge named them, as its prompt counts, from 0 where a local scorer found them."""

    claim: str
    label: Label
    reason: str = ""
    passages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """What a result cost. `cost_usd` is None where the model's price is unknown, never 0.

    `estimated` is true where the endpoint reported no usage and tokens were counted by us.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Score:
    """A score in [0, 1]; `raw` the value before clamping or mapping, `label` a word where the scale has words."""

    value: float
    raw: float | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class NotApplicable:
    reason: NotApplicableReason


@dataclass(frozen=True, slots=True)
class Failed:
    """`detail` is for logs and results, never for a metric label; it holds no text of the trace."""

    reason: FailedReason
    detail: str = ""


Outcome = Score | NotApplicable | Failed


@dataclass(frozen=True, slots=True)
class Result:
    """One scorer's outcome on one interaction.

    `scorer` is the metric's name (faithfulness, ...). `fingerprint` identifies the instrument: scorer version,
    prompt hash and judge model (judged) or scorer version and table version (local). `evidence` is JSON-ready:
    claims, verdicts, sentences, ratings with reasons; it may quote the trace, so it leaves the process only
    where content is allowed to. `attempt` is 0 except when judging is repeated on purpose. `probability`, in
    (0, 1], is below 1 where only a hashed share of the interactions gets this scorer (the full local tier).
    """

    interaction_id: str
    scorer: str
    kind: Kind
    outcome: Outcome
    version: str
    fingerprint: str
    tier: Tier | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    verdicts: Sequence[Verdict] = ()
    flags: tuple[str, ...] = ()
    usage: Usage | None = None
    attempt: int = 0
    probability: float = 1.0

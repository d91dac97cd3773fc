"""What can go wrong while scoring, and whether trying again can help.

ScorerError
├── UnknownScorer          no retry: the name is not in the catalog
├── BadScorerOptions       no retry: the configuration of a scorer can not work
└── JudgeError             carries the `FailedReason` that its results get
    ├── JudgeAuth          no retry (one refresh of the key is tried before it is raised)
    ├── JudgeQuota         no retry: the account is out of money
    ├── JudgeModelUnknown  no retry
    ├── JudgeRefused       no retry: this content or this request is rejected
    │   ├── FormRefused    no retry as it is: a simpler response format may pass
    │   └── PromptTooLong  no retry as it is: smaller windows may pass
    ├── JudgeOverloaded    retry, not before `retry_after_seconds`
    ├── JudgeUnreachable   retry; once only where the request may have been read (`maybe_billed`)
    ├── BadReply           retry: the body is no chat completion
    ├── BudgetExhausted    no retry before the hour or day is over
    └── DeadlineExceeded   no retry
"""

from __future__ import annotations

from scorers.outcome import FailedReason, Usage


class ScorerError(Exception):
    """The root of this tree."""


class UnknownScorer(ScorerError):
    """No scorer has this name."""


class BadScorerOptions(ScorerError):
    """A scorer's configuration can not work; the message says where, what and the cure."""


class JudgeError(ScorerError):
    """A judge call that gave no usable answer. Its message holds no text of a trace and no secret."""

    reason: FailedReason = FailedReason.JUDGE_UNREACHABLE
    retry: bool = False
    spent: Usage | None = None
    """What the tries before it cost, where there were any."""


class JudgeAuth(JudgeError):
    reason = FailedReason.JUDGE_AUTH


class JudgeQuota(JudgeError):
    reason = FailedReason.JUDGE_QUOTA


class JudgeModelUnknown(JudgeError):
    reason = FailedReason.JUDGE_MODEL_UNKNOWN


class JudgeRefused(JudgeError):
    reason = FailedReason.JUDGE_REFUSED


class FormRefused(JudgeRefused):
    """The endpoint rejects the request, and does not say that it is for the content."""


class PromptTooLong(JudgeRefused):
    """The prompt is over the model's context window."""


class JudgeOverloaded(JudgeError):
    reason = FailedReason.JUDGE_OVERLOADED
    retry = True

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class JudgeUnreachable(JudgeError):
    reason = FailedReason.JUDGE_UNREACHABLE
    retry = True

    def __init__(self, message: str, *, maybe_billed: bool = False) -> None:
        super().__init__(message)
        self.maybe_billed = maybe_billed


class BadReply(JudgeError):
    reason = FailedReason.BAD_REPLY
    retry = True


class BudgetExhausted(JudgeError):
    reason = FailedReason.BUDGET


class DeadlineExceeded(JudgeError):
    reason = FailedReason.DEADLINE

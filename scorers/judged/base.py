"""What judged scorers share: their result's frame, the refusal question, and empty contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from scorers.interaction import Field, Interaction
from scorers.judge.question import WHOLE, Answer, Labelled, Labelling, Prompt, Question
from scorers.outcome import (
    Failed,
    FailedReason,
    NotApplicable,
    NotApplicableReason,
    Outcome,
    Result,
    Usage,
    Verdict,
)
from scorers.refusal import noncommittal
from scorers.scorer import Direction, Kind, ScorerInfo

NONCOMMITTAL = "noncommittal"
"""The key of the refusal question, which several scorers ask."""
RULED = "noncommittal_by_rule"
"""The key under which the runner gives what the rules say of the response: known before anything is asked."""
REFUSAL = NotApplicable(NotApplicableReason.REFUSAL)


def info(
    name: str,
    version: str,
    needs: Sequence[Field],
    scale: str,
    *,
    direction: Direction = Direction.HIGHER_IS_BETTER,
    metrics: tuple[str, ...] = (),
    settings: str = "",
) -> ScorerInfo:
    return ScorerInfo(
        name, version, Kind.JUDGED, frozenset(needs), direction, scale, metrics=metrics, settings=settings
    )


def result(
    scorer: ScorerInfo,
    interaction: Interaction,
    outcome: Outcome,
    *,
    metric: str | None = None,
    evidence: Mapping[str, object] | None = None,
    verdicts: Sequence[Verdict] = (),
    flags: Sequence[str] = (),
    usage: Usage | None = None,
) -> Result:
    """A result without fingerprint, which the runner fills in."""
    return Result(
        interaction.id,
        metric or scorer.name,
        Kind.JUDGED,
        outcome,
        scorer.version,
        "",
        evidence=evidence or {},
        verdicts=tuple(verdicts),
        flags=tuple(dict.fromkeys(flags)),
        usage=usage,
    )


def has_contexts(interaction: Interaction) -> bool:
    """Whether any passage holds text; passages of white space are no contexts."""
    return any(passage.text.strip() for passage in interaction.contexts or ())


def refusal_question(prompt: Prompt) -> Labelling:
    """Is the response noncommittal? Asked only when the rules are unsure."""
    return Labelling(NONCOMMITTAL, prompt, frozenset({Field.RESPONSE}), ("yes", "no"), reasons=False)


def ruled(interaction: Interaction) -> dict[str, Answer]:
    """What is known of a response without asking, as answers to start from."""
    if interaction.response is None:
        return {}
    found = noncommittal(interaction.response)
    return {RULED: Answer(labels={WHOLE: Labelled(found.label, found.rule)})}


def by_rule(interaction: Interaction, answers: Mapping[str, Answer]) -> Labelled:
    """The rules' label (yes, no, unsure), with the rule's name as its reason; computed here if not given."""
    given = answers.get(RULED) or ruled(interaction).get(RULED)
    return (given.label if given is not None else None) or Labelled("yes", "empty")


def refuses(interaction: Interaction, answers: Mapping[str, Answer]) -> Literal["yes", "no"] | Failed | None:
    """By the rules where they are sure, else by the judge; None while the judge has not been asked."""
    label = by_rule(interaction, answers).label
    if label != "unsure":
        return "yes" if label == "yes" else "no"
    answer = answers.get(NONCOMMITTAL)
    if answer is None:
        return None
    if answer.label is None:
        return answer.failure or missing(answer)
    return "yes" if answer.label.label == "yes" else "no"


def unanswered(interaction: Interaction, answers: Mapping[str, Answer]) -> NotApplicable | Failed | None:
    """The outcome of what is defined for answers only: a refusal, or unknown whether it is one; None for an answer."""
    refusing = refuses(interaction, answers)
    if refusing == "yes":
        return REFUSAL
    return None if refusing == "no" else refusing or missing(None)


def first_asked(interaction: Interaction, answers: Mapping[str, Answer], prompt: Prompt) -> list[Question] | None:
    """The refusal question where it is to be asked beside the others; None where nothing is to be asked, since the
    response refuses or it could not be told."""
    refusing = refuses(interaction, answers)
    if refusing == "yes" or isinstance(refusing, Failed):
        return None
    return [refusal_question(prompt)] if refusing is None else []


def missing(answer: Answer | None) -> Failed:
    """The failure of an answer that is not whole, or was never given."""
    if answer is not None and answer.failure is not None:
        return answer.failure
    return Failed(FailedReason.BAD_REPLY, "the judge gave no answer")


def flags_of(labelled: Mapping[str, Labelled]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(flag for one in labelled.values() for flag in one.flags))

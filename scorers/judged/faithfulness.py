"""Faithfulness: the share of the response's claims that the contexts support (Es et al. 2023, "RAGAS")."""

from __future__ import annotations

from collections.abc import Mapping

from scorers.interaction import Field, Interaction
from scorers.judge.question import Answer, Inline, Item, Labelled, Labelling, Listing, Prompt, Question
from scorers.judged.base import first_asked, flags_of, has_contexts, info, missing, result, unanswered
from scorers.outcome import Label, NotApplicable, NotApplicableReason, Result, Score, Verdict

CLAIMS = "claims"
VERDICTS = "verdicts"
LABELS = ("supported", "contradicted", "unsupported")
"""In order of precedence over windows of the contexts: support anywhere is support."""


class Faithfulness:
    """Score = supported claims / claims.

    Contexts that are known to be empty under a response that is not a refusal give 0, decided here: no claim can
    be supported. A refusal and a response without claims are not applicable. A verdict that stays missing makes
    the result failed, with the verdicts that there are in its evidence: a share over a part is not the share.
    """

    info = info(
        "faithfulness", "1", (Field.QUESTION, Field.CONTEXTS, Field.RESPONSE), "share of claims that are supported"
    )

    def __init__(self) -> None:
        self._claims = Prompt.load("claims")
        self._verdicts = Prompt.load("verdicts")
        self._inline = Prompt.load("verdicts_inline")
        self._refusal = Prompt.load("noncommittal")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._claims, self._verdicts, self._inline, self._refusal)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        asked = first_asked(interaction, answers, self._refusal)
        if asked is None:
            return []
        if not has_contexts(interaction):
            return asked
        if CLAIMS not in answers:
            return [*asked, claims_question(self._claims, self._inline)]
        claims = answers[CLAIMS].entries
        if claims and VERDICTS not in answers:
            asked.append(verdicts_question(self._verdicts, claims))
        return asked

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        unscored = unanswered(interaction, answers)
        if unscored is not None:
            return [result(self.info, interaction, unscored)]
        if not has_contexts(interaction):
            return [result(self.info, interaction, Score(0.0, raw=0.0), flags=("no_contexts_found",))]
        listed = answers.get(CLAIMS)
        if listed is None or listed.failure is not None:
            return [result(self.info, interaction, missing(listed))]
        if not listed.entries:
            return [result(self.info, interaction, NotApplicable(NotApplicableReason.NO_CLAIMS))]
        judged = answers.get(VERDICTS)
        labels: Mapping[str, Labelled] = judged.labels if judged is not None else {}
        verdicts = verdicts_of(listed.entries, labels, ranks=len(interaction.contexts or ()))
        evidence = {"claims": list(listed.entries), "supported": _supported(verdicts)}
        flags = (*listed.flags, *flags_of(labels))
        if len(verdicts) < len(listed.entries):
            outcome = missing(judged)
            return [result(self.info, interaction, outcome, evidence=evidence, verdicts=verdicts, flags=flags)]
        share = _supported(verdicts) / len(verdicts)
        score = Score(share, raw=share)
        return [result(self.info, interaction, score, evidence=evidence, verdicts=verdicts, flags=flags)]


def claims_question(prompt: Prompt, inline: Prompt) -> Listing:
    """The response as standalone claims; asked once for all scorers that need them."""
    return Listing(
        CLAIMS,
        prompt,
        frozenset({Field.QUESTION, Field.RESPONSE}),
        inline=Inline(VERDICTS, inline, LABELS, frozenset({Field.CONTEXTS})),
        windowed=Field.RESPONSE,
    )


def verdicts_question(prompt: Prompt, claims: tuple[str, ...]) -> Labelling:
    items = tuple(Item(str(number), claim) for number, claim in enumerate(claims, start=1))
    return Labelling(VERDICTS, prompt, frozenset({Field.CONTEXTS}), LABELS, items=items, cites=True)


def verdicts_of(claims: tuple[str, ...], labels: Mapping[str, Labelled], *, ranks: int) -> list[Verdict]:
    """Claims with their labels, by id; passages that do not exist are not cited."""
    return [
        Verdict(
            claim,
            Label(labels[str(number)].label),
            labels[str(number)].reason,
            tuple(rank for rank in labels[str(number)].passages if 1 <= rank <= ranks),
        )
        for number, claim in enumerate(claims, start=1)
        if str(number) in labels
    ]


def _supported(verdicts: list[Verdict]) -> int:
    return sum(1 for verdict in verdicts if verdict.label is Label.SUPPORTED)

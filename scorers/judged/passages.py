"""Scorers over single passages: relevance to the question, usefulness for the response or for the reference."""

from __future__ import annotations

from collections.abc import Mapping

from scorers.interaction import Field, Interaction
from scorers.judge.question import Answer, Item, Labelled, Labelling, Prompt, Question
from scorers.judged.arithmetic import average_precision
from scorers.judged.base import flags_of, has_contexts, info, missing, result
from scorers.needs import unmet
from scorers.outcome import NotApplicable, NotApplicableReason, Outcome, Result, Score


def passage_items(interaction: Interaction) -> tuple[Item, ...]:
    """One item for each passage that holds text; the others are irrelevant without asking."""
    passages = enumerate(interaction.contexts or (), start=1)
    return tuple(Item(str(rank), f"passage {rank}") for rank, passage in passages if passage.text.strip())


def useful_prompt(target: Field) -> Prompt:
    loaded = Prompt.load("passage_useful")
    return Prompt(f"useful_for_{target.value}", loaded.version, loaded.text.replace("{target}", target.value))


class PassageLabels:
    """One yes-or-no question about every passage, in one call for all."""

    def __init__(self, key: str, prompt: Prompt, needs: frozenset[Field], labels: tuple[str, str]) -> None:
        self.key = key
        self.prompt = prompt
        self._needs = needs
        self._labels = labels

    def question(self, interaction: Interaction) -> Labelling:
        return Labelling(
            self.key, self.prompt, self._needs, self._labels, items=passage_items(interaction), by_passage=True
        )

    def read(self, interaction: Interaction, answer: Answer | None) -> tuple[list[bool] | None, dict[str, object]]:
        """Relevance by rank, None where a label is missing; and the evidence."""
        labels: Mapping[str, Labelled] = answer.labels if answer is not None else {}
        asked = {item.id for item in passage_items(interaction)}
        rows = [
            {"rank": int(item_id), "label": one.label, "reason": one.reason} for item_id, one in labels.items()
        ]
        if asked - set(labels):
            return None, {"passages": rows}
        ranks = range(1, len(interaction.contexts or ()) + 1)
        relevant = [str(rank) in labels and labels[str(rank)].label == self._labels[0] for rank in ranks]
        return relevant, {"passages": rows}


class PassageRelevance:
    """Self-RAG's IsRel for each passage (Asai et al. 2023), and what follows from the ranks.

    `passage_relevance` and `precision_at_k` are relevant passages / k; `context_precision` is the average
    precision with usefulness judged against the response, so it needs one. No contexts found: all are 0.
    """

    info = info(
        "passage_relevance",
        "1",
        (Field.QUESTION, Field.CONTEXTS),
        "share of passages that are relevant; for context_precision average precision",
        metrics=("passage_relevance", "precision_at_k", "context_precision"),
    )

    def __init__(self) -> None:
        both = frozenset({Field.QUESTION, Field.CONTEXTS})
        prompt = Prompt.load("passage_relevance")
        self._relevant = PassageLabels("passage_relevance", prompt, both, ("relevant", "irrelevant"))
        self._useful = PassageLabels(
            "passage_useful_response", useful_prompt(Field.RESPONSE), both | {Field.RESPONSE}, ("yes", "no")
        )

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._relevant.prompt, self._useful.prompt)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        if not has_contexts(interaction):
            return []
        wanted = [self._relevant] + ([self._useful] if _undamaged_response(interaction) is None else [])
        return [one.question(interaction) for one in wanted if one.key not in answers]

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        relevance, precision, context_precision = self.info.metrics
        relevant, shown = _read(self._relevant, interaction, answers)
        share = sum(relevant) / len(relevant) if relevant else 0.0
        scored: Outcome = missing(answers.get(self._relevant.key)) if relevant is None else Score(share, raw=share)
        flags = _flags(self._relevant, answers)
        results = [
            result(self.info, interaction, scored, metric=metric, evidence=shown, flags=flags)
            for metric in (relevance, precision)
        ]
        outcome = _undamaged_response(interaction)
        useful, shown = _read(self._useful, interaction, answers)
        if outcome is None:
            outcome = missing(answers.get(self._useful.key)) if useful is None else _precision(useful)
        flags = _flags(self._useful, answers)
        return [
            *results,
            result(self.info, interaction, outcome, metric=context_precision, evidence=shown, flags=flags),
        ]


def _undamaged_response(interaction: Interaction) -> Outcome | None:
    """Why context_precision can not be judged against the response; None when it can."""
    reason = unmet({Field.RESPONSE}, interaction)
    if reason is None and not (interaction.response or "").strip():
        return NotApplicable(NotApplicableReason.NO_RESPONSE)
    return reason


def _read(
    labels: PassageLabels, interaction: Interaction, answers: Mapping[str, Answer]
) -> tuple[list[bool] | None, dict[str, object]]:
    if not has_contexts(interaction):
        return [False] * len(interaction.contexts or ()), {}
    return labels.read(interaction, answers.get(labels.key))


def _flags(labels: PassageLabels, answers: Mapping[str, Answer]) -> tuple[str, ...]:
    return flags_of(answers[labels.key].labels) if labels.key in answers else ()


def _precision(useful: list[bool]) -> Score:
    value = average_precision(useful)
    return Score(value, raw=value)


class ContextPrecisionReference:
    """Average precision, each passage judged useful or not for arriving at the reference; no contexts found: 0."""

    info = info(
        "context_precision_reference",
        "1",
        (Field.QUESTION, Field.CONTEXTS, Field.REFERENCE),
        "average precision, 0 to 1",
    )

    def __init__(self) -> None:
        needs = frozenset({Field.QUESTION, Field.CONTEXTS, Field.REFERENCE})
        self._useful = PassageLabels(
            "passage_useful_reference", useful_prompt(Field.REFERENCE), needs, ("yes", "no")
        )

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._useful.prompt,)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        if not has_contexts(interaction) or self._useful.key in answers:
            return []
        return [self._useful.question(interaction)]

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        useful, shown = _read(self._useful, interaction, answers)
        outcome = missing(answers.get(self._useful.key)) if useful is None else _precision(useful)
        flags = _flags(self._useful, answers)
        return [result(self.info, interaction, outcome, evidence=shown, flags=flags)]

"""Scorers that need a reference answer: context recall, factual correctness, noise sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from scorers.interaction import Field, Interaction
from scorers.judge.question import Answer, Item, Labelled, Labelling, Listing, Prompt, Question
from scorers.judged.arithmetic import f_beta, noise_sensitivity
from scorers.judged.base import first_asked, flags_of, has_contexts, info, missing, result, unanswered
from scorers.judged.faithfulness import CLAIMS, claims_question
from scorers.outcome import Failed, NotApplicable, NotApplicableReason, Outcome, Result, Score
from scorers.scorer import Direction, ScorerInfo

Level = Literal["low", "high"]
_YES_NO = ("yes", "no")
_NO_CLAIMS = NotApplicable(NotApplicableReason.NO_CLAIMS)
_GRAIN = {"low": "few", "high": "the smallest possible"}
_COVERAGE = {"low": "Take only the main statements.", "high": "Cover everything that the text states."}


def statements_question(target: Field, *, atomicity: Level = "high", coverage: Level = "high") -> Listing:
    """A text as statements. Equal settings give equal questions, so scorers share them."""
    loaded = Prompt.load("statements")
    text = loaded.text.replace("{target}", target.value)
    text = text.replace("{grain}", _GRAIN[atomicity]).replace("{coverage}", _COVERAGE[coverage])
    prompt = Prompt(f"{target.value}_statements", loaded.version, text)
    key = f"{target.value}_statements:{atomicity}:{coverage}"
    return Listing(key, prompt, frozenset({Field.QUESTION, target}), windowed=target)


def _entailed_prompt(target: Field) -> Prompt:
    loaded = Prompt.load("entailed")
    return Prompt(f"entailed_by_{target.value}", loaded.version, loaded.text.replace("{target}", target.value))


def _items(entries: tuple[str, ...]) -> tuple[Item, ...]:
    return tuple(Item(str(number), text) for number, text in enumerate(entries, start=1))


def _yes(entries: tuple[str, ...], answer: Answer | None) -> list[bool] | None:
    """One truth per entry, by id; None where any is missing."""
    labels: Mapping[str, Labelled] = answer.labels if answer is not None else {}
    numbers = [str(number) for number in range(1, len(entries) + 1)]
    if any(number not in labels for number in numbers):
        return None
    return [labels[number].label == "yes" for number in numbers]


def _shown(entries: tuple[str, ...], answer: Answer | None) -> list[dict[str, object]]:
    labels: Mapping[str, Labelled] = answer.labels if answer is not None else {}
    return [
        {"statement": text, "label": labels[str(number)].label, "reason": labels[str(number)].reason}
        for number, text in enumerate(entries, start=1)
        if str(number) in labels
    ]


def _flags(*answers: Answer | None) -> tuple[str, ...]:
    """What is to be known of a result that rests on these answers."""
    return tuple(flag for one in answers if one is not None for flag in (*one.flags, *flags_of(one.labels)))


class ContextRecall:
    """Share of the reference's statements that can be attributed to the joined contexts; none found: 0."""

    info = info(
        "context_recall",
        "1",
        (Field.QUESTION, Field.CONTEXTS, Field.REFERENCE),
        "share of the reference's statements that are attributed",
    )

    def __init__(self) -> None:
        self._statements = statements_question(Field.REFERENCE)
        self._attributed = Prompt.load("attributed")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (self._statements.prompt, self._attributed)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        if not has_contexts(interaction):
            return []
        listed = answers.get(self._statements.key)
        if listed is None:
            return [self._statements]
        if not listed.entries or "attributed" in answers:
            return []
        needs = frozenset({Field.CONTEXTS})
        return [Labelling("attributed", self._attributed, needs, _YES_NO, items=_items(listed.entries))]

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        if not has_contexts(interaction):
            return [result(self.info, interaction, Score(0.0, raw=0.0), flags=("no_contexts_found",))]
        listed, judged = answers.get(self._statements.key), answers.get("attributed")
        if listed is None or listed.failure is not None:
            return [result(self.info, interaction, missing(listed))]
        if not listed.entries:
            return [result(self.info, interaction, _NO_CLAIMS)]
        attributed = _yes(listed.entries, judged)
        evidence = {"statements": _shown(listed.entries, judged)}
        if attributed is None:
            return [result(self.info, interaction, missing(judged), evidence=evidence)]
        share = sum(attributed) / len(attributed)
        flags = _flags(listed, judged)
        return [result(self.info, interaction, Score(share, raw=share), evidence=evidence, flags=flags)]


class FactualCorrectness:
    """Claims of the response against the reference (TP, FP), and of the reference against the response (FN).

    `mode` is precision = TP / (TP + FP), recall = TP / (TP + FN) or their F with `beta`. The unrounded value is
    kept; Ragas rounds to two digits. A refusal is not applicable; so is a text without claims.
    """

    def __init__(
        self,
        *,
        mode: Literal["precision", "recall", "f1"] = "f1",
        beta: float = 1.0,
        atomicity: Level = "low",
        coverage: Level = "low",
    ) -> None:
        self.info = info(
            "factual_correctness",
            "1",
            (Field.QUESTION, Field.RESPONSE, Field.REFERENCE),
            f"{mode}, 0 to 1",
            settings=f"{mode} {beta!r}",
        )
        self._mode = mode
        self._beta = beta
        self._refusal = Prompt.load("noncommittal")
        self._response = statements_question(Field.RESPONSE, atomicity=atomicity, coverage=coverage)
        self._reference = statements_question(Field.REFERENCE, atomicity=atomicity, coverage=coverage)
        self._by_reference = _entailed_prompt(Field.REFERENCE)
        self._by_response = _entailed_prompt(Field.RESPONSE)
        self._forward = f"{self._response.key}:by_reference"
        self._backward = f"{self._reference.key}:by_response"

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        asked = (self._response.prompt, self._reference.prompt, self._by_reference, self._by_response)
        return (*asked, self._refusal)

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        asked = first_asked(interaction, answers, self._refusal)
        if asked is None:
            return []
        listings = [self._response] + ([self._reference] if self._mode != "precision" else [])
        asked += [listing for listing in listings if listing.key not in answers]
        for listing, key, prompt, against in (
            (self._response, self._forward, self._by_reference, Field.REFERENCE),
            (self._reference, self._backward, self._by_response, Field.RESPONSE),
        ):
            listed = answers.get(listing.key)
            if listing in listings and listed is not None and listed.entries and key not in answers:
                items = _items(listed.entries)
                asked.append(Labelling(key, prompt, frozenset({against}), _YES_NO, items=items))
        return asked

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        unscored = unanswered(interaction, answers)
        if unscored is not None:
            return [result(self.info, interaction, unscored)]
        evidence: dict[str, object] = {}
        flags: list[str] = []
        found: list[list[bool]] = []
        pairs = [
            ("response", self._response.key, self._forward),
            ("reference", self._reference.key, self._backward),
        ]
        for name, listing, key in pairs[:1] if self._mode == "precision" else pairs:
            listed, judged = answers.get(listing), answers.get(key)
            if listed is None or listed.failure is not None:
                return [result(self.info, interaction, missing(listed), evidence=evidence)]
            if not listed.entries:
                return [result(self.info, interaction, _NO_CLAIMS, evidence=evidence)]
            evidence[name] = _shown(listed.entries, judged)
            truths = _yes(listed.entries, judged)
            if truths is None:
                return [result(self.info, interaction, missing(judged), evidence=evidence)]
            found.append(truths)
            flags += _flags(listed, judged)
        value = self._value(found)
        return [result(self.info, interaction, Score(value, raw=value), evidence=evidence, flags=flags)]

    def _value(self, found: list[list[bool]]) -> float:
        true_positives = sum(found[0])
        precision = true_positives / len(found[0])
        if self._mode == "precision":
            return precision
        below = true_positives + found[1].count(False)
        recall = true_positives / below if below else 0.0
        return recall if self._mode == "recall" else f_beta(precision=precision, recall=recall, beta=self._beta)


class NoiseSensitivity:
    """Share of the response's claims that are wrong and come from a relevant, or only an irrelevant, passage.

    A claim is wrong if the reference does not support it; a passage is relevant if it supports any statement of
    the reference. One scorer gives both metrics, from the same verdicts.
    """

    info: ScorerInfo = info(
        "noise_sensitivity",
        "1",
        (Field.QUESTION, Field.CONTEXTS, Field.RESPONSE, Field.REFERENCE),
        "share of the response's claims",
        direction=Direction.LOWER_IS_BETTER,
        metrics=("noise_sensitivity_relevant", "noise_sensitivity_irrelevant"),
    )

    def __init__(self) -> None:
        self._claims = claims_question(Prompt.load("claims"), Prompt.load("verdicts_inline"))
        self._statements = statements_question(Field.REFERENCE)
        self._by_reference = _entailed_prompt(Field.REFERENCE)
        loaded = Prompt.load("entailed_by_passage")
        self._response_by = Prompt("response_by_passage", loaded.version, loaded.text)
        self._reference_by = Prompt("reference_by_passage", loaded.version, loaded.text)
        self._refusal = Prompt.load("noncommittal")

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        return (
            self._claims.prompt,
            self._statements.prompt,
            self._by_reference,
            self._response_by,
            self._reference_by,
            self._refusal,
        )

    def _ranks(self, interaction: Interaction) -> list[int]:
        passages = enumerate(interaction.contexts or (), start=1)
        return [rank for rank, passage in passages if passage.text.strip()]

    def questions(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Question]:
        asked = first_asked(interaction, answers, self._refusal)
        if asked is None or not has_contexts(interaction):
            return []
        claims, statements = answers.get(CLAIMS), answers.get(self._statements.key)
        asked += [listing for listing in (self._claims, self._statements) if listing.key not in answers]
        if claims is None or statements is None or not claims.entries or not statements.entries:
            return asked
        wanted = [
            Labelling(
                "claims_by_reference",
                self._by_reference,
                frozenset({Field.REFERENCE}),
                _YES_NO,
                items=_items(claims.entries),
            )
        ]
        for prompt, entries in ((self._response_by, claims.entries), (self._reference_by, statements.entries)):
            wanted += [
                Labelling(
                    f"{prompt.name}:{rank}",
                    prompt,
                    frozenset({Field.CONTEXTS}),
                    _YES_NO,
                    items=_items(entries),
                    passages=(rank,),
                    reasons=False,
                )
                for rank in self._ranks(interaction)
            ]
        return asked + [labelling for labelling in wanted if labelling.key not in answers]

    def results(self, interaction: Interaction, answers: Mapping[str, Answer]) -> list[Result]:
        outcome, evidence = self._judged(interaction, answers)
        flags = _flags(*(answers.get(key) for key in self._keys(interaction))) if evidence else ()
        outcomes: tuple[Outcome, Outcome]
        if isinstance(outcome, tuple):
            outcomes = (Score(outcome[0], raw=outcome[0]), Score(outcome[1], raw=outcome[1]))
        else:
            outcomes = (outcome, outcome)
        return [
            result(self.info, interaction, one, metric=metric, evidence=evidence, flags=flags)
            for metric, one in zip(self.info.metrics, outcomes, strict=True)
        ]

    def _keys(self, interaction: Interaction) -> list[str]:
        """All that it asks, but for the refusal."""
        by_passage = [
            f"{prompt.name}:{rank}"
            for prompt in (self._response_by, self._reference_by)
            for rank in self._ranks(interaction)
        ]
        return [CLAIMS, self._statements.key, "claims_by_reference", *by_passage]

    def _judged(
        self, interaction: Interaction, answers: Mapping[str, Answer]
    ) -> tuple[tuple[float, float] | NotApplicable | Failed, dict[str, object]]:
        unscored = unanswered(interaction, answers)
        if unscored is not None:
            return unscored, {}
        if not has_contexts(interaction):
            return NotApplicable(NotApplicableReason.NO_CONTEXTS), {}
        claims, statements = answers.get(CLAIMS), answers.get(self._statements.key)
        for listed in (claims, statements):
            if listed is None or listed.failure is not None:
                return missing(listed), {}
            if not listed.entries:
                return _NO_CLAIMS, {}
        assert claims is not None
        assert statements is not None
        right = _yes(claims.entries, answers.get("claims_by_reference"))
        if right is None:
            return missing(answers.get("claims_by_reference")), {}
        rows: dict[str, list[list[bool]]] = {}
        for prompt, entries in ((self._response_by, claims.entries), (self._reference_by, statements.entries)):
            for rank in self._ranks(interaction):
                answer = answers.get(f"{prompt.name}:{rank}")
                truths = _yes(entries, answer)
                if truths is None:
                    return missing(answer), {}
                rows.setdefault(prompt.name, []).append(truths)
        evidence: dict[str, object] = {
            "claims": list(claims.entries),
            "statements": list(statements.entries),
            "right": right,
            "ranks": self._ranks(interaction),
            **rows,
        }
        shares = noise_sensitivity(
            wrong=[not one for one in right],
            supports_response=rows[self._response_by.name],
            supports_reference=rows[self._reference_by.name],
        )
        return shares, evidence

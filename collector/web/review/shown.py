"""What a case page shows: a case turned into what a template prints, with nothing left to compute."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from collector.review.case import Case, CaseResult
from collector.review.labels import Label, LabelKind, Labelled
from collector.web.inert import cut
from collector.web.review.highlight import MAX_CLAIMS, Segment, segments
from scorers.scorer import Kind, Tier

CUT_CHARS = 4_000
"""Characters of a text before "show all"."""
CUT_ITEMS = 50
"""Passages, claims and turns before "show all"."""
MAX_METRIC = 200
"""Characters of a metric's name that people can label."""
FULL_CHARS = 1_000_000
FULL_ITEMS = 2_000
_EVIDENCE_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class Text:
    """A text and how many characters of it are not shown."""

    text: str
    left: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """`target` is its number in labels; `passages` are ranks from 0 that exist; `placed` where it was found in the
    response."""

    target: int
    text: Text
    label: str
    reason: Text
    passages: tuple[int, ...]
    placed: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One result. `attempts` are the scores of repeats of the same instrument."""

    metric: str
    kind: str
    tier: str | None
    outcome: str
    score: float | None
    label: str | None
    reason: str | None
    detail: str
    flags: tuple[str, ...]
    version: str
    fingerprint: str
    evidence: Text
    claims: tuple[Claim, ...]
    lower_is_better: bool
    quality: bool
    cost_usd: float | None
    estimated: bool
    attempts: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage. `says` are relevance statements about it: who, what, why. `cited` are claims that rest on it."""

    rank: int
    text: Text
    id: str | None
    score: float | None
    distance: float | None
    metadata: Mapping[str, str]
    says: tuple[tuple[str, str, str], ...]
    cited: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class Given:
    """A label as the history of the case shows it."""

    author: str
    at_unix: float
    what: str
    value: str
    holds: bool
    source: str


@dataclass(frozen=True, slots=True)
class CasePage:
    case: Case
    question: Text | None
    reference: Text | None
    response: Text | None
    segments: Sequence[Segment]
    claims: Sequence[Claim]
    claims_metric: str
    claims_by: str
    left_claims: int
    judged: Sequence[Outcome]
    local: Sequence[Outcome]
    metrics: Sequence[Outcome]
    passages: Sequence[Shown] | None
    left_passages: int
    history: Sequence[tuple[str, Text]]
    left_history: int
    damage: Mapping[str, str]
    given: Sequence[Given]
    cut: bool
    effect: Labelled = field(default_factory=Labelled)


def case_page(case: Case, *, full: bool) -> CasePage:
    """`full` shows what is cut otherwise, up to bounds that hold for every page."""
    chars, items = (FULL_CHARS, FULL_ITEMS) if full else (CUT_CHARS, CUT_ITEMS)
    interaction = case.interaction
    contexts = interaction.contexts
    ranks = len(contexts or ())
    results = _first_tries(case.results)
    speaking = next((one for one in results if one.verdicts), None)
    response = _text(interaction.response, chars)
    claims: tuple[Claim, ...] = ()
    pieces: list[Segment] = []
    if response is not None:
        pieces = [Segment(response.text)]
    if speaking is not None:
        verdicts = speaking.verdicts[:items]
        if response is not None:
            pieces = segments(response.text, [(one.claim, one.label) for one in verdicts[:MAX_CLAIMS]])
        placed = {index for piece in pieces for index in piece.claims}
        claims = _claims(speaking, ranks, items, placed)
    outcomes = [_outcome(one, case.results, ranks, items) for one in results]
    passages = None
    if contexts is not None:
        says = _relevance(results, ranks)
        passages = [
            Shown(
                rank,
                Text(*cut(one.text, chars)),
                one.id,
                one.score,
                one.distance,
                {str(name)[:100]: str(value)[:500] for name, value in list(one.metadata.items())[:20]},
                tuple(says.get(rank, ())),
                tuple((claim.target, claim.label) for claim in claims if rank in claim.passages),
            )
            for rank, one in enumerate(contexts[:items])
        ]
    effect = case.in_effect
    seen: set[str] = set()
    primary = []
    for one in outcomes:
        if one.metric not in seen and one.score is not None and one.quality and len(one.metric) <= MAX_METRIC:
            seen.add(one.metric)
            primary.append(one)
    primary.sort(key=_by_importance)
    turns = interaction.history[-items:]
    shown_texts = [response, _text(interaction.question, chars), *(one.text for one in passages or ())]
    return CasePage(
        case=case,
        question=_text(interaction.question, chars),
        reference=_text(interaction.reference, chars),
        response=response,
        segments=pieces,
        claims=claims,
        claims_metric=speaking.metric if speaking else "",
        claims_by=_by(speaking) if speaking else "",
        left_claims=len(speaking.verdicts) - len(claims) if speaking else 0,
        judged=[one for one in outcomes if one.kind == Kind.JUDGED],
        local=[one for one in outcomes if one.kind != Kind.JUDGED],
        metrics=primary[:items],
        passages=passages,
        left_passages=ranks - len(passages or ()),
        history=[(turn.role, Text(*cut(turn.text, chars))) for turn in turns],
        left_history=len(interaction.history) - len(turns),
        damage={str(part): str(why) for part, why in interaction.damage.items()},
        given=[_given(label, effect) for label in case.labels],
        cut=not full
        and (
            any(one is not None and one.left for one in shown_texts)
            or ranks > items
            or len(interaction.history) > items
            or bool(speaking and len(speaking.verdicts) > items)
        ),
        effect=effect,
    )


_FIRST = ("faithfulness", "groundedness", "context_relevance", "response_relevancy")


def _by_importance(one: Outcome) -> tuple[bool, bool, int, str]:
    """The order in which people are asked, the same on every page: the judge's, what tells most, flags last."""
    place = _FIRST.index(one.metric) if one.metric in _FIRST else len(_FIRST)
    return one.kind != Kind.JUDGED, one.lower_is_better, place, one.metric


def _first_tries(results: Sequence[CaseResult]) -> list[CaseResult]:
    """What a judge says first, then the full local tier; of each instrument its first try."""
    order = {Tier.FULL.value: 1, Tier.FAST.value: 2}
    firsts = [one for one in results if one.attempt == 0]
    return sorted(firsts, key=lambda one: (one.kind != Kind.JUDGED, order.get(one.tier or "", 0), one.metric))


def _outcome(one: CaseResult, results: Sequence[CaseResult], ranks: int, items: int) -> Outcome:
    same = [
        again.score
        for again in results
        if again.attempt and again.key[:-1] == one.key[:-1] and again.score is not None
    ]
    try:
        evidence = json.dumps(one.evidence, ensure_ascii=False, indent=1, default=str) if one.evidence else ""
    except (ValueError, TypeError, RecursionError):
        evidence = ""
    return Outcome(
        metric=one.metric,
        kind=one.kind,
        tier=one.tier,
        outcome=one.outcome.value,
        score=one.score,
        label=one.label,
        reason=one.reason,
        detail=one.detail,
        flags=one.flags,
        version=one.version,
        fingerprint=one.fingerprint,
        evidence=Text(*cut(evidence, _EVIDENCE_CHARS)),
        claims=_claims(one, ranks, items, set()),
        lower_is_better=one.lower_is_better,
        quality=one.quality,
        cost_usd=one.usage.cost_usd if one.usage else None,
        estimated=bool(one.usage and one.usage.estimated),
        attempts=tuple(same[:10]),
    )


def _claims(one: CaseResult, ranks: int, items: int, placed: set[int]) -> tuple[Claim, ...]:
    # Judged verdicts count passages from 1, as the prompt does; local ones from 0.
    first = 1 if one.kind == Kind.JUDGED else 0
    return tuple(
        Claim(
            target=index,
            text=Text(*cut(verdict.claim, CUT_CHARS)),
            label=str(verdict.label),
            reason=Text(*cut(verdict.reason, CUT_CHARS)),
            passages=tuple(dict.fromkeys(rank - first for rank in verdict.passages if 0 <= rank - first < ranks)),
            placed=index in placed,
        )
        for index, verdict in enumerate(one.verdicts[:items])
    )


def _relevance(results: Sequence[CaseResult], ranks: int) -> dict[int, list[tuple[str, str, str]]]:
    """What scorers say of single passages, from their evidence: labels by rank (judged), or numbers in rank order."""
    found: dict[int, list[tuple[str, str, str]]] = {}
    for one in results:
        listed = one.evidence.get("passages")
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            continue
        who = f"{one.metric}, {_by(one)}"
        for place, said in enumerate(listed[:FULL_ITEMS]):
            if isinstance(said, Mapping):
                rank = said.get("rank")
                if isinstance(rank, int) and 1 <= rank <= ranks:
                    entry = (who, str(said.get("label", ""))[:100], str(said.get("reason", ""))[:1000])
                    found.setdefault(rank - 1, []).append(entry)
            elif isinstance(said, int | float) and place < ranks:
                found.setdefault(place, []).append((who, f"{said:.2f}", ""))
    return {rank: _joined(said) for rank, said in found.items()}


def _joined(said: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Metrics that rest on the same statement (share, precision at k) say it once."""
    rows = sorted(said, key=lambda row: row[1:])
    return [(", ".join(row[0] for row in group), *what) for what, group in groupby(rows, key=lambda row: row[1:])]


def _by(one: CaseResult) -> str:
    return f"{one.kind} ({one.tier})" if one.tier else one.kind


def _given(label: Label, effect: Labelled) -> Given:
    what = label.kind.value
    if label.kind is LabelKind.CLAIM and label.target is not None:
        what = f"claim {label.target + 1} of {label.metric}"
    elif label.kind is LabelKind.PASSAGE and label.target is not None:
        what = f"passage {label.target + 1}"
    elif label.kind is LabelKind.UNDO:
        what = "took back"
    elif label.metric:
        what = f"{what} {label.metric}"
    value = "" if label.value is None else str(label.value)
    if label.kind is LabelKind.AGREE:
        what, value = f"{value}s with {label.metric}", ""
    holds = label.kind is not LabelKind.UNDO and label.revision not in effect.undone
    return Given(label.author, label.at_unix, what, cut(value, CUT_CHARS)[0], holds, label.source)


def _text(text: str | None, chars: int) -> Text | None:
    return None if text is None else Text(*cut(text, chars))

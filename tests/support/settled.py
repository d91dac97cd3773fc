"""Strategies that draw settled interactions, as full as they can be."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from collector.records.decision import Decision, Fate
from collector.records.diagnosis import Cause, Diagnosis
from collector.records.found import Found, Mark, TokenUsage
from collector.records.settled import Settled
from scorers.interaction import Damage, Field, Interaction, Passage, Turn
from scorers.outcome import (
    Failed,
    FailedReason,
    Label,
    NotApplicable,
    NotApplicableReason,
    Result,
    Score,
    Usage,
    Verdict,
)
from scorers.scorer import Kind, Tier

texts = st.text(st.characters(codec="utf-8"), max_size=20)
maybe = st.none() | texts
counts = st.integers(0, 10**9)
finite = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(1e-9, 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | finite | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
passages = st.builds(Passage, texts, maybe, st.none() | finite, st.none() | finite, json_objects)
outcomes = (
    st.builds(Score, st.floats(0, 1), st.none() | finite, maybe)
    | st.builds(NotApplicable, st.sampled_from(NotApplicableReason))
    | st.builds(Failed, st.sampled_from(FailedReason), texts)
)
verdicts = st.builds(
    Verdict, texts, st.sampled_from(Label), texts, st.lists(st.integers(0, 50), max_size=3).map(tuple)
)


@st.composite
def results(draw: st.DrawFn, interaction_id: str, kind: Kind) -> Result:
    return Result(
        interaction_id=interaction_id,
        scorer=draw(texts),
        kind=kind,
        outcome=draw(outcomes),
        version=draw(texts),
        fingerprint=draw(texts),
        tier=draw(st.sampled_from(Tier)) if kind is Kind.LOCAL else None,
        evidence=draw(json_objects),
        verdicts=tuple(draw(st.lists(verdicts, max_size=2))),
        flags=tuple(draw(st.lists(texts, max_size=2))),
        usage=draw(
            st.none() | st.builds(Usage, counts, counts, counts, st.none() | st.floats(0, 1e6), st.booleans())
        ),
        attempt=draw(st.integers(0, 5)),
        probability=draw(shares),
    )


@st.composite
def settled_interactions(draw: st.DrawFn) -> Settled:
    ident = draw(texts)
    interaction = Interaction(
        id=ident,
        question=draw(maybe),
        contexts=draw(st.none() | st.lists(passages, max_size=3).map(tuple)),
        response=draw(maybe),
        reference=draw(maybe),
        history=tuple(draw(st.lists(st.builds(Turn, texts, texts), max_size=2))),
        damage=draw(st.dictionaries(st.sampled_from(Field), st.sampled_from(Damage), max_size=3)),
        language=draw(maybe),
    )
    found = Found(
        interaction=interaction,
        trace_ids=tuple(draw(st.lists(texts, max_size=2))),
        span_id=draw(texts),
        service=draw(texts),
        service_version=draw(maybe),
        environment=draw(maybe),
        convention=draw(texts),
        model=draw(maybe),
        request_model=draw(maybe),
        session=draw(maybe),
        user=draw(maybe),
        tenant=draw(maybe),
        usage=draw(st.none() | st.builds(TokenUsage, st.none() | counts, st.none() | counts)),
        response_id=draw(maybe),
        rewritten_query=draw(maybe),
        unused_passages=tuple(draw(st.lists(passages, max_size=1))),
        error=draw(maybe),
        marks=frozenset(draw(st.sets(st.sampled_from(Mark), max_size=4))),
        rules=draw(st.dictionaries(texts, texts, max_size=2)),
        resource=draw(json_objects),
        attributes=draw(json_objects),
        trace_state=draw(texts),
        ended_unix_nano=draw(st.integers(0, 2**63 - 1)),
    )
    causes = st.none() | st.sampled_from(Cause)
    return Settled(
        found=found,
        decision=Decision(
            draw(st.sampled_from(Fate)),
            draw(shares),
            draw(texts),
            draw(st.floats(1, 1e6)),
            draw(st.booleans()),
            draw(st.floats(0, 1)),
            draw(st.floats(1, 1e6) | st.just(math.inf)),
        ),
        local=tuple(draw(st.lists(results(ident, Kind.LOCAL), max_size=2))),
        judged=tuple(draw(st.lists(results(ident, Kind.JUDGED), max_size=2))),
        segments=tuple(draw(st.dictionaries(texts, texts, max_size=2)).items()),
        screening_probability=draw(shares),
        diagnosis=draw(st.none() | st.builds(Diagnosis, causes, causes)),
    )

"""Users' feedback, which comes after the decision: it makes a case for people, and is no term of an estimate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from collector.pipeline.clock import Clock
from collector.review.case import Case, Feedback, Pick, Reason
from collector.review.picker import Picker
from collector.review.query import Query
from collector.review.store import ReviewStore

MAX_COMMENT = 4_000
"""Characters kept of a user's comment."""


class FeedbackIntake:
    """Takes feedback by the id of an interaction, a trace or a response, looks for it among the latest interactions,
    and then in the store. What was said goes through `redact` first. Lives on the event loop; the store is asked in a
    thread."""

    def __init__(self, picker: Picker, store: ReviewStore, clock: Clock, *, redact: Callable[[str], str]) -> None:
        self._picker = picker
        self._store = store
        self._clock = clock
        self._redact = redact

    async def take(
        self,
        *,
        score: float | None,
        comment: str = "",
        name: str = "user_feedback",
        source: str = "api",
        case_id: str = "",
        trace_id: str = "",
        response_id: str = "",
    ) -> str:
        """One of `metrics.REVIEW_FEEDBACK_OUTCOMES`. `score` is in [0, 1]; a comment is cut at MAX_COMMENT."""
        now = self._clock.unix_nano() / 1e9
        said = self._redact(comment[:MAX_COMMENT])
        feedback = Feedback(now, score, said, self._redact(source[:100]), self._redact(name[:100]))
        outcome = self._picker.feedback(feedback, case_id=case_id, trace_id=trace_id, response_id=response_id)
        if outcome is not None:
            return outcome
        case = await asyncio.to_thread(self._kept, case_id, trace_id, response_id)
        if case is None:
            return self._picker.count_feedback("unknown")
        picks = case.picks
        if self._picker.complains(feedback):
            picks = (*picks, Pick(Reason.FEEDBACK, now, detail=feedback.name))
        self._store.put(replace(case, picks=picks, feedback=(feedback,)))
        return self._picker.count_feedback("attached")

    def failed(self) -> None:
        """Count feedback that could not be looked at."""
        self._picker.count_feedback("failed")

    def _kept(self, case_id: str, trace_id: str, response_id: str) -> Case | None:
        if case_id:
            return self._store.get(case_id)
        if not trace_id:
            return None  # the store knows no response ids: what asks by one asks within minutes
        rows = self._store.find(Query(trace_id=trace_id), limit=1).rows
        return self._store.get(rows[0].id) if rows else None

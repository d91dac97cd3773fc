"""Runs scorers on interactions: checks what they need, keeps the deadline, turns every error into an outcome."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from scorers.interaction import Interaction
from scorers.needs import unmet
from scorers.outcome import Failed, FailedReason, Outcome, Result, Usage
from scorers.scorer import JudgedScorer, LocalScorer, ScorerInfo

if TYPE_CHECKING:  # screening's workers run local scorers only and must not load an HTTP client
    from scorers.judge.planner import Planner
    from scorers.judge.question import Answer, Question
from scorers.judged.base import ruled

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


def run_local(scorers: Sequence[LocalScorer], batch: Sequence[Interaction]) -> list[list[Result]]:
    """All results of `scorers` on each interaction of `batch`, in order. Never raises for an interaction."""
    results: list[list[Result]] = [[] for _ in batch]
    for scorer in scorers:
        ready: list[int] = []
        for index, interaction in enumerate(batch):
            reason = unmet(scorer.info.needs, interaction)
            if reason is None:
                ready.append(index)
            else:
                results[index] += _unscored(scorer.info, interaction, reason)
        for index, got in zip(ready, _score_ready(scorer, [batch[i] for i in ready]), strict=True):
            results[index] += _unscored(scorer.info, batch[index], got) if isinstance(got, Failed) else got
    return results


def _score_ready(scorer: LocalScorer, ready: list[Interaction]) -> list[list[Result] | Failed]:
    """Score as one batch; where that breaks, one by one, so that one odd interaction costs only itself."""
    if not ready:
        return []
    scored = _guarded(scorer.info, partial(scorer.score, ready))
    if not isinstance(scored, Failed) and len(scored) == len(ready):
        return list(scored)
    if len(ready) == 1:
        wrong = f"{0 if isinstance(scored, Failed) else len(scored)} lists of results for one interaction"
        return [scored if isinstance(scored, Failed) else Failed(FailedReason.SCORER_ERROR, wrong)]
    return [got for interaction in ready for got in _score_ready(scorer, [interaction])]


async def judge_interaction(
    scorers: Sequence[JudgedScorer],
    interaction: Interaction,
    planner: Planner,
    *,
    fingerprints: Mapping[str, str],
    deadline: float,
    attempt: int = 0,
) -> list[Result]:
    """All results of `scorers` on one interaction. Never raises for an interaction, or for a judge that fails.

    `fingerprints` are by scorer name. `deadline` is on the judge's monotonic clock.
    `attempt` above 0 is a repeat on purpose and bypasses the cache.
    """
    results: list[Result] = []
    running: list[JudgedScorer] = []
    broken: dict[str, Failed] = {}
    claimed: dict[str, Question] = {}
    for scorer in scorers:
        reason = unmet(scorer.info.needs, interaction)
        if reason is None:
            running.append(scorer)
        else:
            unmet_ones = _unscored(scorer.info, interaction, reason)
            results += [_stamped(one, fingerprints, scorer, attempt, None) for one in unmet_ones]

    def collect(answers: Mapping[str, Answer]) -> list[tuple[str, Question]]:
        wanted: list[tuple[str, Question]] = []
        for scorer in running:
            name = scorer.info.name
            if name in broken:
                continue
            asked = _guarded(scorer.info, partial(scorer.questions, interaction, answers))
            if isinstance(asked, Failed):
                broken[name] = asked
                continue
            for question in asked:
                first = claimed.setdefault(question.key, question)
                if first is not question and first != question:
                    _LOG.error("scorer %s asks another question under the key %r", name, question.key)
                    broken[name] = Failed(FailedReason.SCORER_ERROR, f"the key {question.key!r} is taken")
            if name not in broken:
                wanted += [(name, question) for question in asked]
        return wanted

    answers: Mapping[str, Answer] = {}
    usages: Mapping[str, Usage] = {}
    try:
        asking = await planner.ask(
            interaction, collect, known=ruled(interaction), deadline=deadline, use_cache=attempt == 0
        )
        answers, usages = asking.answers, asking.usage
    except Exception as error:  # noqa: BLE001  # a bug in the planner must not cost the caller its loop
        _LOG.exception("judging an interaction raised; its results are failed: scorer_error")
        broken = {scorer.info.name: Failed(FailedReason.SCORER_ERROR, type(error).__name__) for scorer in running}
    for scorer in running:
        got: list[Result] | Failed
        if scorer.info.name in broken:
            got = broken[scorer.info.name]
        else:
            got = _guarded(scorer.info, partial(scorer.results, interaction, answers))
        made = _unscored(scorer.info, interaction, got) if isinstance(got, Failed) else got
        usage = usages.get(scorer.info.name)
        results += [
            _stamped(one, fingerprints, scorer, attempt, usage if not n else None) for n, one in enumerate(made)
        ]
    owners = {metric: scorer.info.name for scorer in scorers for metric in scorer.info.gives}
    order = [scorer.info.name for scorer in scorers]
    results.sort(key=lambda one: order.index(owners[one.scorer]) if one.scorer in owners else len(order))
    return results


def _stamped(
    one: Result, fingerprints: Mapping[str, str], scorer: JudgedScorer, attempt: int, usage: Usage | None
) -> Result:
    """The result with what the runner knows: its instrument, its attempt, and what it cost."""
    instrument = fingerprints.get(scorer.info.name, one.fingerprint)
    return replace(one, usage=usage, fingerprint=instrument, attempt=attempt)


def fingerprint(scorer: JudgedScorer, *, model: str, plan: str) -> str:
    """The instrument: scorer and version, digest of its settings, of its prompts and of the plan, and the model."""
    digest = hashlib.blake2b(f"{plan}{scorer.info.settings}".encode("utf-8", "surrogatepass"), digest_size=4)
    for prompt in scorer.prompts:
        digest.update(prompt.digest.encode())
    return f"{scorer.info.name}/{scorer.info.version}+{digest.hexdigest()}@{model}"


def _unscored(info: ScorerInfo, interaction: Interaction, outcome: Outcome) -> list[Result]:
    return [
        Result(
            interaction.id, metric, info.kind, outcome, info.version, f"{info.name}/{info.version}", tier=info.tier
        )
        for metric in info.gives
    ]


def _guarded(info: ScorerInfo, act: Callable[[], _T]) -> _T | Failed:
    try:
        return act()
    except Exception as error:  # noqa: BLE001  # here a bug in any scorer becomes an outcome
        _LOG.exception("scorer %s raised; its result is failed: scorer_error", info.name)
        return Failed(FailedReason.SCORER_ERROR, type(error).__name__)

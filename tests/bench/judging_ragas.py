"""Our four default scorers beside Ragas' on the same texts, in process: calls, prompt tokens, CPU per interaction.

    RAGAS_DO_NOT_TRACK=true python -m tests.bench.judging_ragas [--quick]

Needs the extra `parity`. No network: both get the same claims, questions, ratings and vectors from memory at once,
so what is measured is what the library itself costs. Ours are text that is read as a judge's reply; Ragas' are made
into its models at once, without the reading of JSON. Prompt tokens are estimated by one rule for both, without the
schemas that ride along on either side. Ragas and our plans take turns; a ratio is the median over the turns.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import os
import statistics
import time
import warnings
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from scorers import catalog
from scorers.judge.client import Address, Endpoint, Runtime
from scorers.judge.form import Form
from scorers.judge.keys import FixedKey
from scorers.judge.limits import Budget, BudgetLimits
from scorers.judge.observer import SilentObserver
from scorers.judge.options import JudgeOptions
from scorers.judge.service import Judge
from scorers.judge.tokens import estimate_tokens
from scorers.judge.transport import make_transport
from scorers.judge.wire import ChatReply
from scorers.outcome import Usage
from scorers.testing import Received, plain_answer, plain_vector
from tests.bench.judging import FOUR, INTERACTION

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
_CLAIMS = [f"{claim.rstrip('.')}." for claim in (INTERACTION.response or "").split(". ")]
_vector = functools.cache(plain_vector)


class InProcess(Endpoint):
    """An endpoint that answers from memory; every form of reply is answered by rule once, then known."""

    def __init__(self, options: JudgeOptions) -> None:
        runtime = Runtime(SilentObserver())
        budget = Budget(hour=BudgetLimits(), day=BudgetLimits(), unix_seconds=time.time, observer=runtime.observer)
        transport = make_transport(url=options.base_url, ca_file=None, proxy=None, max_connections=1)
        super().__init__(
            Address("stub", options.base_url, "stub", FixedKey(None)), options, transport, budget, runtime
        )
        self.calls = 0
        self.tokens = 0
        self._known: dict[tuple[str, ...], str] = {}

    async def chat(self, form: Form, *, output_tokens: int, deadline: float) -> tuple[ChatReply, Usage]:
        self.calls += 1
        self.tokens += estimate_tokens(form.system) + estimate_tokens(form.user)
        if form.names not in self._known:
            body = {"messages": [{"role": "user", "content": form.user}]}
            self._known[form.names] = plain_answer(Received("", {}, body))
        return ChatReply(self._known[form.names], input_tokens=1, output_tokens=1), Usage(1, 1, 1)

    async def embed(self, texts: Sequence[str], *, deadline: float) -> tuple[tuple[tuple[float, ...], ...], Usage]:
        return tuple(tuple(_vector(text)) for text in texts), Usage(1, 1)


def ours(plan: str, scorers: Sequence[str] = FOUR) -> tuple[Callable[[], Awaitable[object]], InProcess]:
    options = JudgeOptions.model_validate(
        {
            "base_url": "http://127.0.0.1:9/v1",
            "model": "stub",
            "plan": plan,
            "cache_entries": 0,
            "budget": {"day": {}},
        }
    )
    endpoint = InProcess(options)
    judge = Judge(options, catalog.judged(scorers), secret=b"bench", endpoints=(endpoint, endpoint))
    return lambda: judge.score(INTERACTION), endpoint


class _Apart:
    """One judge for each scorer, sharing nothing, as Ragas' metrics do: what it costs when nothing is united."""

    def __init__(self) -> None:
        self._asked = [ours("standard", [scorer]) for scorer in FOUR]

    async def one(self) -> None:
        for score, _ in self._asked:
            await score()

    @property
    def calls(self) -> int:
        return sum(endpoint.calls for _, endpoint in self._asked)

    @property
    def tokens(self) -> int:
        return sum(endpoint.tokens for _, endpoint in self._asked)


def _theirs() -> tuple[Callable[[], Awaitable[object]], Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas.embeddings.base import BaseRagasEmbedding
        from ragas.llms.base import InstructorBaseRagasLLM
        from ragas.metrics import collections

    replies: dict[str, dict[str, Any]] = {
        "StatementGeneratorOutput": {"statements": _CLAIMS},
        "NLIStatementOutput": {"statements": [{"statement": s, "reason": "words", "verdict": 1} for s in _CLAIMS]},
        "AnswerRelevanceOutput": {"question": f"{_CLAIMS[0]}?", "noncommittal": 0},
        "ContextRelevanceOutput": {"rating": 2},
        "ResponseGroundednessOutput": {"rating": 2},
    }

    class Scripted(InstructorBaseRagasLLM):  # type: ignore[misc]  # ragas is untyped where it is not installed
        calls = 0
        tokens = 0

        def generate(self, prompt: str, response_model: Any) -> Any:
            raise NotImplementedError

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            self.calls += 1
            self.tokens += estimate_tokens(prompt)
            return response_model(**replies[response_model.__name__])

    class Vectors(BaseRagasEmbedding):  # type: ignore[misc]  # likewise
        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            return _vector(text)

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return _vector(text)

    llm = Scripted()
    question, response = INTERACTION.question, INTERACTION.response
    contexts = [passage.text for passage in INTERACTION.contexts or ()]
    faithfulness = collections.Faithfulness(llm=llm)
    relevancy = collections.AnswerRelevancy(llm=llm, embeddings=Vectors())
    relevance = collections.ContextRelevance(llm=llm)
    groundedness = collections.ResponseGroundedness(llm=llm)

    async def one() -> None:
        await faithfulness.ascore(user_input=question, response=response, retrieved_contexts=contexts)
        await relevancy.ascore(user_input=question, response=response)
        await relevance.ascore(user_input=question, retrieved_contexts=contexts)
        await groundedness.ascore(response=response, retrieved_contexts=contexts)

    return one, llm


async def compare(
    measured: dict[str, tuple[Callable[[], Awaitable[object]], Any]], *, turns: int, times: int
) -> None:
    """Print the CPU time of each, taking turns, and how many times of it the first one takes."""
    print(
        f"{'':10}{'calls':>7}{'prompt tokens':>15}{'CPU ms/interaction':>20}{'times as fast':>15}{'(range)':>14}"
    )
    rows: dict[str, str] = {}
    for name, (one, counted) in measured.items():
        await one()
        rows[name] = f"{name:10}{counted.calls:>7}{counted.tokens:>15}"
    taken: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(turns):
        for name, (one, _) in measured.items():
            started = time.process_time()
            for _ in range(times):
                await one()
            taken[name].append(1000 * (time.process_time() - started) / times)
    baseline = taken[next(iter(measured))]
    for name, each in taken.items():
        ratios = [theirs / own for theirs, own in zip(baseline, each, strict=True)]
        spread = f"{min(ratios):.1f} to {max(ratios):.1f}"
        print(f"{rows[name]}{statistics.median(each):>20.2f}{statistics.median(ratios):>15.2f}{spread:>14}")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="3 turns of 20 interactions instead of 9 of 100")
    chosen = parser.parse_args(argv)
    turns, times = (3, 20) if chosen.quick else (9, 100)
    apart = _Apart()
    measured: dict[str, tuple[Callable[[], Awaitable[object]], Any]] = {
        "ragas": _theirs(),
        "apart": (apart.one, apart),
        "standard": ours("standard"),
        "fused": ours("fused"),
    }
    asyncio.run(compare(measured, turns=turns, times=times))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Our four default scorers beside Ragas' on the same texts, in process: calls, prompt tokens, CPU per interaction.

    RAGAS_DO_NOT_TRACK=true python -m tests.bench.judging_ragas [--quick]

Needs the extra `parity`. No network: both get replies from memory at once, so what is measured is what the library
itself costs. Prompt tokens are estimated by one rule for both, without the schemas that ride along on either side.
"""

from __future__ import annotations

import argparse
import asyncio
import os
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


class InProcess(Endpoint):
    """An endpoint that answers from memory; every prompt is answered by rule once, then known."""

    def __init__(self, options: JudgeOptions) -> None:
        runtime = Runtime(SilentObserver())
        budget = Budget(hour=BudgetLimits(), day=BudgetLimits(), unix_seconds=time.time, observer=runtime.observer)
        transport = make_transport(url=options.base_url, ca_file=None, proxy=None, max_connections=1)
        super().__init__(
            Address("stub", options.base_url, "stub", FixedKey(None)), options, transport, budget, runtime
        )
        self.calls = 0
        self.tokens = 0
        self._known: dict[str, str] = {}

    async def chat(self, form: Form, *, output_tokens: int, deadline: float) -> tuple[ChatReply, Usage]:
        self.calls += 1
        self.tokens += estimate_tokens(form.system) + estimate_tokens(form.user)
        if form.user not in self._known:
            body = {"messages": [{"role": "user", "content": form.user}]}
            self._known[form.user] = plain_answer(Received("", {}, body))
        return ChatReply(self._known[form.user], input_tokens=1, output_tokens=1), Usage(1, 1, 1)

    async def embed(self, texts: Sequence[str], *, deadline: float) -> tuple[tuple[tuple[float, ...], ...], Usage]:
        return tuple(tuple(plain_vector(text)) for text in texts), Usage(1, 1)


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


def _theirs() -> tuple[Callable[[], Awaitable[object]], Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ragas.embeddings.base import BaseRagasEmbedding
        from ragas.llms.base import InstructorBaseRagasLLM
        from ragas.metrics import collections

    replies: dict[str, dict[str, Any]] = {
        "StatementGeneratorOutput": {"statements": ["a", "b", "c", "d"]},
        "NLIStatementOutput": {"statements": [{"statement": s, "reason": "words", "verdict": 1} for s in "abcd"]},
        "AnswerRelevanceOutput": {"question": "What is the limit?", "noncommittal": 0},
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
            return plain_vector(text)

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return plain_vector(text)

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


async def measure(name: str, one: Callable[[], Awaitable[object]], counted: Any, *, times: int) -> float:
    await one()
    calls, tokens = counted.calls, counted.tokens
    best = float("inf")
    for _ in range(3):
        started = time.process_time()
        for _ in range(times):
            await one()
        best = min(best, 1000 * (time.process_time() - started) / times)
    print(f"{name:10}{calls:>7}{tokens:>15}{best:>20.2f}")
    return best


async def _run(times: int) -> None:
    print(f"{'':10}{'calls':>7}{'prompt tokens':>15}{'CPU ms/interaction':>20}")
    baseline = await measure("ragas", *_theirs(), times=times)
    for plan in ("standard", "fused"):
        taken = await measure(plan, *ours(plan), times=times)
        print(f"{'':10}ragas takes {baseline / taken:.1f} times the CPU")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="20 interactions instead of 200")
    chosen = parser.parse_args(argv)
    asyncio.run(_run(20 if chosen.quick else 200))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Faithfulness, relevancy and context relevance beside DeepEval's on the same texts, in process: calls, tokens, CPU.

    python3 -m venv DIR && DIR/bin/pip install deepeval . && DIR/bin/python -m tests.bench.judging_deepeval [--quick]

DeepEval brings pytest plugins that change how a suite runs, so it has an environment of its own; where it is not
installed this says so and measures nothing. Its metrics are not ours (no groundedness; answer relevancy by statements,
without embeddings), so what is compared is the cost of three scores of the same meaning, with its reasons left out.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import importlib.util
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from scorers.judge.tokens import estimate_tokens
from tests.bench.judging import INTERACTION
from tests.bench.judging_ragas import compare, ours

os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
THREE = ["faithfulness", "response_relevancy", "context_relevance"]
_VERDICTS = [{"verdict": "yes", "statement": text, "reason": None} for text in "abcd"]
_REPLIES: dict[str, dict[str, Any]] = {
    "Truths": {"truths": list("abcd")},
    "Claims": {"claims": list("abcd")},
    "Statements": {"statements": list("abcd")},
    "Verdicts": {"verdicts": _VERDICTS},
    "ContextualRelevancyVerdicts": {"verdicts": _VERDICTS},
}


def theirs() -> tuple[Callable[[], Awaitable[object]], Any]:
    """One interaction by DeepEval's three metrics, and what counts its calls."""
    metrics = importlib.import_module("deepeval.metrics")
    base: Any = importlib.import_module("deepeval.models").DeepEvalBaseLLM
    case = importlib.import_module("deepeval.test_case").LLMTestCase(
        input=INTERACTION.question,
        actual_output=INTERACTION.response,
        retrieval_context=[passage.text for passage in INTERACTION.contexts or ()],
    )

    class Scripted(base):  # type: ignore[misc]  # a class that is known only when it is installed
        calls = 0
        tokens = 0

        def load_model(self) -> Any:
            return self

        def get_model_name(self) -> str:
            return "scripted"

        def generate(self, prompt: str, schema: Any) -> Any:
            raise NotImplementedError

        async def a_generate(self, prompt: str, schema: Any) -> Any:
            self.calls += 1
            self.tokens += estimate_tokens(prompt)
            return schema(**_REPLIES[schema.__name__])

    llm = Scripted()
    names = ("FaithfulnessMetric", "AnswerRelevancyMetric", "ContextualRelevancyMetric")

    async def one() -> None:
        for name in names:
            metric = getattr(metrics, name)(model=llm, include_reason=False)
            await metric.a_measure(case, _show_indicator=False)

    return one, llm


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 turns of 20 interactions instead of 9 of 100")
    chosen = parser.parse_args(argv)
    if importlib.util.find_spec("deepeval") is None:
        print("deepeval is not installed here; see this file's first lines")
        return 0
    measured = {"deepeval": theirs(), "standard": ours("standard", THREE), "fused": ours("fused", THREE)}
    turns, times = (3, 20) if chosen.quick else (9, 100)
    asyncio.run(compare(measured, turns=turns, times=times))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

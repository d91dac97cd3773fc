"""Planted interactions for the benches that ask a real judge, and how they reach it."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from scorers.catalog import judged, runnable
from scorers.interaction import Interaction, Passage
from scorers.judge.options import EmbeddingsOptions, JudgeOptions
from scorers.judge.service import Judge
from scorers.testing import ScriptedJudge

_TEXTS = (
    (
        "How much is paid for a hotel?",
        "Hotels on business trips are paid up to 120 euros per night.",
        "Hotels are paid up to 120 euros per night.",
        "Hotels are paid up to 300 euros per night.",
    ),
    (
        "When did the volcano last erupt?",
        "The volcano last erupted in 1902 and has been quiet since.",
        "The volcano last erupted in 1902.",
        "The volcano last erupted in 1987.",
    ),
    (
        "구내식당은 언제 운영하나요?",
        "구내식당은 오전 11시 30분부터 오후 2시까지 운영합니다.",
        "구내식당은 오전 11시 30분부터 오후 2시까지 운영합니다.",
        "구내식당은 저녁 9시까지 운영합니다.",
    ),
    (
        "Which metal is the bridge made of?",
        "The bridge over the Elm was built of wrought iron in 1881.",
        "The bridge was built of wrought iron.",
        "The bridge was built of aluminium.",
    ),
    (
        "Who may park in the yard?",
        "Only suppliers may park in the yard, for at most 30 minutes.",
        "Only suppliers may park in the yard.",
        "All employees may park in the yard for free.",
    ),
    (
        "환불은 며칠 안에 신청해야 하나요?",
        "환불은 구매일로부터 14일 이내에 신청해야 합니다.",
        "환불은 구매일로부터 14일 이내에 신청해야 합니다.",
        "환불은 구매일로부터 60일 이내에 신청해야 합니다.",
    ),
)


def good(number: int) -> Interaction:
    """An answer that its passage supports."""
    question, passage, right, _ = _TEXTS[number % len(_TEXTS)]
    return Interaction(f"good-{number}", question, (Passage(passage),), right)


def bad(number: int) -> Interaction:
    """An answer that its passage contradicts."""
    question, passage, _, wrong = _TEXTS[number % len(_TEXTS)]
    return Interaction(f"bad-{number}", question, (Passage(passage),), wrong)


def count() -> int:
    return len(_TEXTS)


def add_judge_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base-url", help="an OpenAI-compatible endpoint that needs no key")
    parser.add_argument("--model", default="judge", help="its model")
    parser.add_argument(
        "--embeddings-url", help="an embeddings endpoint (tests/support/embeddings_server.py is one)"
    )
    parser.add_argument("--plan", choices=("standard", "fused"), default="standard")
    parser.add_argument("--concurrency", type=int, default=1, help="calls in flight, at most")
    parser.add_argument(
        "--quick", action="store_true", help="few items, and a scripted judge where no URL is given"
    )


@asynccontextmanager
async def a_judge(args: argparse.Namespace, scorers: list[str]) -> AsyncIterator[Judge]:
    """The judge that the arguments name; the scripted one, which can not be steered, where they name none."""
    if not args.base_url:
        async with ScriptedJudge() as server:
            args.base_url = server.base_url
            async with a_judge(args, scorers) as judge:
                yield judge
        return
    options = JudgeOptions(
        base_url=args.base_url,
        model=args.model,
        plan=args.plan,
        window_tokens=8000,
        deadline_seconds=600,
        call_timeout_seconds=300,
        start_concurrency=args.concurrency,
        max_concurrency=args.concurrency,
        cache_entries=0,
        embeddings=EmbeddingsOptions(model="embeddings", base_url=args.embeddings_url)
        if args.embeddings_url
        else None,
    )
    asked, left_out = runnable(judged(scorers), embeddings=bool(args.embeddings_url))
    for name in left_out:
        print(f"{name} is not measured: it needs an embeddings endpoint")
    async with Judge(options, asked) as judge:
        yield judge

"""The installed sidecar with a real judge: traces go in over OTLP, scores come out on /metrics and as events.

    python -m tests.bench.judge_live --base-url http://127.0.0.1:8081/v1 --model NAME [--embeddings-url URL] [--quick]

English and Korean answers, right and wrong ones; every one of them is judged. What is looked at is whether each ends
with an outcome for each metric, and which; how good the judge is, `groundwatch bench-judge` tells.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scorers.interaction import Interaction
from tests.support.judge import JudgeServer
from tests.support.judge_items import add_judge_arguments, bad, count, good
from tests.support.otlp_sink import LogSink
from tests.support.sidecar import Metrics, Sidecar, quick_config
from tests.support.traces import body, rag_trace

_SECONDS = 3_000
"""In which all must have been judged: a small model on this machine takes a minute for one."""


def _service(one: Interaction) -> str:
    """`right-english`, `wrong-korean`, ...: a segment of its own for each kind of answer."""
    side = "right" if one.id.startswith("good") else "wrong"
    return f"{side}-{'english' if (one.question or '').isascii() else 'korean'}"


def _config(args: argparse.Namespace, base_url: str, events: str) -> dict[str, Any]:
    judge: dict[str, Any] = {
        "base_url": base_url,
        "model": args.model,
        "plan": args.plan,
        "window_tokens": 8_000,
        "call_timeout_seconds": 280,
        "start_concurrency": args.concurrency,
        "max_concurrency": args.concurrency,
    }
    if args.embeddings_url:
        judge["embeddings"] = {"model": "embeddings", "base_url": args.embeddings_url}
    return quick_config(
        judge=judge,
        sampling={"rate": 1.0},
        judging={"max_age_seconds": _SECONDS, "deadline_seconds": 1_500},
        export={"otlp": {"endpoint": events, "kinds": ["judged"]}},
    )


def _outcomes(now: Metrics) -> dict[str, dict[str, str]]:
    """Of each metric, by service: the mean of what was scored, and what was not."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for labels in now.series("groundwatch_judged_sum_w_total"):
        metric, service = dict(labels)["metric"], dict(labels)["service"]
        by = {"metric": metric, "service": service}
        weight = now.total("groundwatch_judged_sum_w_total", **by)
        said = (
            [f"{now.total('groundwatch_judged_sum_wy_total', **by) / weight:.2f} of {weight:.0f}"]
            if weight
            else []
        )
        for outcome in ("not_applicable", "failed"):
            unscored = now.total("groundwatch_judged_weight_total", outcome=outcome, **by)
            said += [f"{unscored:.0f} {outcome}"] if unscored else []
        if said:
            found[metric][service] = ", ".join(said)
    return found


def _run(args: argparse.Namespace, base_url: str, directory: Path) -> int:
    items = [make(number) for number in ((0, 2) if args.quick else range(count())) for make in (good, bad)]
    dice = random.Random(1)
    with LogSink() as sink:
        sidecar = Sidecar(directory, _config(args, base_url, sink.endpoint))
        try:
            sidecar.ready()
            for one in items:
                contexts = [passage.text for passage in one.contexts or ()]
                spans = rag_trace(
                    dice, question=one.question or "", contexts=contexts, response=one.response or ""
                )
                sidecar.send(body(spans, service=_service(one)))
            now = sidecar.wait(
                lambda now: now.total("groundwatch_interactions_settled_total") >= len(items),
                "every answer has an outcome",
                seconds=_SECONDS,
            )
            sidecar.wait(
                lambda now: now.total("groundwatch_evaluation_events_total", outcome="sent") > 0,
                "events went out",
                seconds=30,
            )
        finally:
            code = sidecar.terminate() if sidecar.process.poll() is None else sidecar.process.returncode
            sidecar.end()
        events = len({event.attributes["groundwatch.interaction.id"] for event in sink.events})
    calls = now.total("groundwatch_judge_calls_total")
    print(f"{args.model}, plan {args.plan}: {len(items)} answers, {calls:.0f} calls; exit code {code}")
    print(f"  evaluation events of {events} of {len(items)} answers")
    for metric, services in sorted(_outcomes(now).items()):
        print(f"  {metric}: " + "; ".join(f"{service} {said}" for service, said in sorted(services.items())))
    failed = now.by("groundwatch_judged_unscored_weight_total", "reason", outcome="failed")
    print(f"  failed, by reason: {dict(failed) or 'none'}")
    return 0 if events == len(items) and code == 0 else 1


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_judge_arguments(parser)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as directory:
        if args.base_url:
            return _run(args, args.base_url, Path(directory))
        with JudgeServer() as judge:
            return _run(args, judge.judge.base_url, Path(directory))


if __name__ == "__main__":
    raise SystemExit(main())

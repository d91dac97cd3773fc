"""`groundwatch inspect`: which interactions are in recorded telemetry, where each part was found, what is missing."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from collector.commands.common import reason
from collector.extract.explain import explain
from collector.extract.extractor import Extraction, Extractor, Seen
from collector.extract.options import Options
from collector.otlp import decode
from collector.otlp.batch import Signal
from collector.otlp.model import LogRecord, RawItem, Span
from collector.receivers.files import UnreadableFile, read_requests
from collector.records.found import Found, TokenUsage
from scorers.interaction import Passage

_NOTHING = {
    Seen.NOTHING: "no interaction found: no span of a convention that groundwatch knows. `--explain` shows how to map "
    "your own attributes",
    Seen.RETRIEVAL_ONLY: "no interaction found: there are retrievals, but no model call that answers",
    Seen.OWN_EVALUATION: "only groundwatch's own evaluations are in there: they are never scored",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="OTLP export requests, protobuf or JSON, traces and logs, in any order",
    )
    parser.add_argument(
        "-c", "--config", type=Path, metavar="FILE", help="groundwatch.yaml; its section `extract:` is used"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="say on standard error, for a person, what was not found and how to mend it",
    )


def run(args: argparse.Namespace) -> int:
    """Print one JSON object per interaction; 0 also where there is none, 2 where a file or the configuration is bad."""
    try:
        options = read_options(args.config)
        spans, logs, malformed = read(args.files)
    except (UnreadableFile, OSError, ValueError) as error:
        sys.stderr.write(f"groundwatch inspect: {reason(error)}\n")
        return 2
    extraction = Extractor(options).extract(spans, logs, complete=True)
    for found in extraction.found:
        sys.stdout.write(json.dumps(as_json(found), ensure_ascii=False, default=str) + "\n")
    if malformed:
        sys.stderr.write(f"{malformed} span(s) or log record(s) could not be read and were left out\n")
    if not extraction.found:
        sys.stderr.write(_NOTHING[extraction.seen] + "\n")
    if args.explain:
        _explain(extraction, options)
    return 0


def _explain(extraction: Extraction, options: Options) -> None:
    from collector.extract.explain import MAPPING

    lines = explain(extraction.found, options)
    if not extraction.found:
        lines = [
            "To map your own attributes, in groundwatch.yaml:",
            *("    " + line for line in MAPPING.splitlines()),
        ]
    sys.stderr.write("\n".join(lines) + "\n")


def read_options(path: Path | None) -> Options:
    """The section `extract:` of a configuration file; the defaults without one. ValueError names the key."""
    if path is None:
        return Options()
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: is no text in UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ValueError(f"{path}{line}: is not valid YAML: {getattr(error, 'problem', None) or error}") from error
    section = content.get("extract") if isinstance(content, dict) else None
    try:
        return Options.model_validate(section or {})
    except ValidationError as error:
        problems = "; ".join(
            f"extract.{'.'.join(str(p) for p in e['loc'])}: {e['msg']} (given: {e['input']!r})"
            for e in error.errors()
        )
        raise ValueError(f"{path}: {problems}") from error


def read(paths: list[Path]) -> tuple[list[Span], list[LogRecord], int]:
    """All spans and log records of the files, and how many could not be decoded."""
    spans: list[Span] = []
    logs: list[LogRecord] = []
    malformed = 0
    for path in paths:
        for batch in read_requests(path):
            malformed += batch.rejected
            for group in batch.groups:
                for item in group.items:
                    raw = RawItem(item, group.resource, group.scope, group.encoding)
                    try:
                        if batch.signal is Signal.TRACES:
                            spans.append(decode.span(raw))
                        else:
                            logs.append(decode.log_record(raw))
                    except decode.MalformedItem:
                        malformed += 1
    return spans, logs, malformed


def as_json(found: Found) -> dict[str, object]:
    """An interaction as `inspect` prints it; what is absent is null."""
    item = found.interaction
    return {
        "interaction_id": item.id,
        "question": item.question,
        "contexts": None if item.contexts is None else [_passage(rank, p) for rank, p in enumerate(item.contexts)],
        "response": item.response,
        "model": found.model,
        "request_model": found.request_model,
        "session": found.session,
        "user": found.user,
        "tenant": found.tenant,
        "usage": _usage(found.usage),
        "reference": item.reference,
        "history": [{"role": turn.role, "content": turn.text} for turn in item.history] or None,
        "rewritten_query": found.rewritten_query,
        "error": found.error,
        "convention": found.convention or None,
        "service": found.service or None,
        "service_version": found.service_version,
        "environment": found.environment,
        "response_id": found.response_id,
        "trace_ids": list(found.trace_ids),
        "span_id": found.span_id or None,
        "marks": sorted(found.marks),
        "damage": {str(part): str(why) for part, why in item.damage.items()},
        "rules": dict(found.rules),
        "unused_contexts": len(found.unused_passages),
    }


def _usage(usage: TokenUsage | None) -> dict[str, int | None] | None:
    return None if usage is None else {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}


def _passage(rank: int, passage: Passage) -> dict[str, object]:
    line: dict[str, object] = {
        "rank": rank,
        "id": passage.id,
        "text": passage.text or None,
        "score": passage.score,
    }
    if passage.distance is not None:
        line["distance"] = passage.distance
    if passage.metadata:
        line["metadata"] = dict(passage.metadata)
    return line

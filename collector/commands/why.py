"""`groundwatch why TRACE_ID`: ask a running groundwatch what became of a trace."""

from __future__ import annotations

import argparse
import sys

from collector.commands.page import DEFAULT_URL, NoAnswer, add_token_argument, ask


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace_id", metavar="TRACE_ID", help="32 hex digits, as your tracing backend shows it")
    parser.add_argument(
        "--url", default=DEFAULT_URL, help="where groundwatch serves its page (default: %(default)s)"
    )
    add_token_argument(parser)


def run(args: argparse.Namespace) -> int:
    trace_id = args.trace_id.strip().lower()
    if len(trace_id) != 32 or any(c not in "0123456789abcdef" for c in trace_id):
        sys.stderr.write(f"{args.trace_id!r} is not a trace id: it has 32 hex digits\n")
        return 2
    try:
        reply = ask(args.url, f"/api/v1/why/{trace_id}", token_env=args.token_env)
    except NoAnswer as error:
        sys.stderr.write(f"{error}\n")
        return error.code
    try:
        content = reply.json()
    except ValueError:
        content = None
    if reply.status_code in (200, 404) and not (isinstance(content, dict) and "decisions" in content):
        sys.stderr.write(f"{args.url}: the reply is none of groundwatch's; is that its address?\n")
        return 1
    if reply.status_code == 404:
        sys.stdout.write(
            f"{trace_id}: nothing is known. It never arrived here, is still open (a trace closes about ten seconds "
            "after its last span), or was pushed out of the ring of the last decisions.\n"
        )
        return 1
    if reply.status_code != 200:
        sys.stderr.write(f"{args.url}: answered {reply.status_code}: {reply.text.strip()}\n")
        return 1
    for note in content["decisions"]:
        facts = "  ".join(f"{name}={value}" for name, value in note["facts"].items())
        sys.stdout.write(f"{note['time']}  {note['stage']:<10} {note['text']}  {facts}".rstrip() + "\n")
    return 0

"""`groundwatch why TRACE_ID`: ask a running groundwatch what became of a trace."""

from __future__ import annotations

import argparse
import os
import sys

import httpx

from collector.commands.common import through_proxies


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("trace_id", metavar="TRACE_ID", help="32 hex digits, as your tracing backend shows it")
    parser.add_argument(
        "--url", default="http://127.0.0.1:4318", help="where groundwatch serves its page (default: %(default)s)"
    )
    parser.add_argument(
        "--token-env",
        metavar="NAME",
        help="environment variable that holds the page's token, where one is configured",
    )


def run(args: argparse.Namespace) -> int:
    trace_id = args.trace_id.strip().lower()
    if len(trace_id) != 32 or any(c not in "0123456789abcdef" for c in trace_id):
        sys.stderr.write(f"{args.trace_id!r} is not a trace id: it has 32 hex digits\n")
        return 2
    headers = {}
    if args.token_env:
        token = os.environ.get(args.token_env)
        if not token:
            sys.stderr.write(f"the environment variable {args.token_env!r} is not set\n")
            return 2
        headers["authorization"] = f"Bearer {token}"
    try:
        reply = httpx.get(
            f"{args.url.rstrip('/')}/api/v1/why/{trace_id}",
            headers=headers,
            timeout=10,
            trust_env=through_proxies(args.url),
        )
    except httpx.HTTPError as error:
        sys.stderr.write(f"{args.url}: no answer ({error}): is groundwatch running there? Give another --url\n")
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
    for note in reply.json()["decisions"]:
        facts = "  ".join(f"{name}={value}" for name, value in note["facts"].items())
        sys.stdout.write(f"{note['time']}  {note['stage']:<10} {note['text']}  {facts}".rstrip() + "\n")
    return 0

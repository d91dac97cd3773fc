"""`groundwatch drift`: which means are watched for getting worse, and what to do when one did."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

from collector.commands.page import DEFAULT_URL, NoAnswer, add_token_argument, ask

_DONE = {
    "ack": "acknowledged; it is watched on from no evidence, with the same level",
    "reset": "reset; it is watched on from no evidence, with the same level",
    "learn": "what is now is the new normal: a new baseline is learned from here on",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Without an action, or with `list`, shows every watched series: its level, how near it is to an alarm, and how "
        "far its baseline is learned. `ack` says that an alarm was seen to; what is still bad alarms again. `reset` "
        "forgets the evidence and the alarm, after an outage that is explained. `learn` takes what is now as the new "
        "normal; a metric that got worse for good is then no alarm any more."
    )
    parser.add_argument("action", nargs="?", choices=("list", *_DONE), default="list")
    parser.add_argument(
        "series", nargs="?", metavar="SERIES", help="as `list` shows it: faithfulness/service=shop"
    )
    parser.add_argument(
        "--url",
        action="append",
        help=f"where groundwatch serves its page (default: {DEFAULT_URL}); once for each replica",
    )
    parser.add_argument("--json", action="store_true", help="print the reply as JSON, one line for each --url")
    add_token_argument(parser)


def run(args: argparse.Namespace) -> int:
    if (args.action == "list") == bool(args.series):
        sys.stderr.write(
            "name no series to list; all are shown\n"
            if args.series
            else f"which series? groundwatch drift {args.action} SERIES, with a name that `groundwatch drift` shows\n"
        )
        return 2
    worst = 0
    urls = args.url or [DEFAULT_URL]
    for url in urls:
        if len(urls) > 1 and not args.json:
            sys.stdout.write(f"{url}\n")
        try:
            worst = max(worst, _one(url, args))
        except NoAnswer as error:
            sys.stderr.write(f"{error}\n")
            worst = max(worst, error.code)
    return worst


def _one(url: str, args: argparse.Namespace) -> int:
    acting = args.action != "list"
    reply = ask(
        url,
        f"/api/v1/drift/{args.action}" if acting else "/api/v1/drift",
        token_env=args.token_env,
        send={"series": args.series} if acting else None,
    )
    if reply.status_code == 404 and acting and "application/json" in reply.headers.get("content-type", ""):
        names = reply.json().get("series") or ["none"]
        sys.stderr.write(f"{url}: no series {args.series!r} is watched; there are: {', '.join(names)}\n")
        return 1
    if reply.status_code != 200:
        sys.stderr.write(f"{url}: answered {reply.status_code}: {reply.text.strip()}\n")
        return 1
    try:
        content = reply.json()
    except ValueError:
        raise NoAnswer(f"{url}: the reply is no JSON; is that groundwatch's address?") from None
    if args.json:
        sys.stdout.write(json.dumps(content) + "\n")
    elif acting:
        sys.stdout.write(f"{args.series}: {_DONE[args.action]}\n")
    else:
        sys.stdout.write("".join(f"{line}\n" for line in _table(content["series"])))
    return 0


def _table(series: list[dict[str, Any]]) -> list[str]:
    if not series:
        return ["nothing is watched: a judge is needed, or estimates.detection.local"]
    rows: list[tuple[str, ...]] = [("SERIES", "STATE", "LEVEL", "EVIDENCE", "ALARMS", "")]
    rows += [_row(one) for one in series]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(one: dict[str, Any]) -> tuple[str, ...]:
    level = "-"
    if one["level"] is not None:
        level = f"{'<=' if one['direction'] == 'lower' else '>='} {one['level']:.3f}" + (
            " set" if one["given"] else ""
        )
    evidence = "-"
    if one["evidence"] is not None:
        evidence = f"{one['evidence']:.1%}" if one["evidence"] < 10 else "over 10x"
    note = ""
    if one["state"] == "learning":
        note = f"baseline {one['progress']:.0%}, {one['baseline_n']:.0f} effective answers"
    elif one["alarm_since"] is not None:
        note = f"since {_time(one['alarm_since'])}"
    elif one["acknowledged"] is not None:
        note = f"acknowledged {_time(one['acknowledged'])}"
    return one["series"], one["state"], level, evidence, str(one["alarms"]), note


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"

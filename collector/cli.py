"""`groundwatch`: the command line. Thin: each command lives in `collector.commands` and is imported when called."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from collector import __version__

COMMANDS = {
    "run": "receive traces, score them, serve metrics and a status page",
    "demo": "watch a small RAG application lose its faithfulness, in 90 seconds, with no key and no broker",
    "check": "validate the configuration, reach its endpoints, count its series",
    "score": "score records from a file",
    "inspect": "show which interactions are found in recorded telemetry, and how",
    "replay": "feed recorded telemetry, from files or a topic, through the line again",
    "why": "say what became of a trace",
    "drift": "list the means that are watched for getting worse, acknowledge an alarm",
    "config": "print the configuration's schema, an example, or what is in force",
    "bench-judge": "say how good, dear, fast and noisy a judge is on labelled records",
    "sampling-plan": "say what a traffic and a budget give: how many judged, cost, intervals, alerts",
    "review": "erase a data subject's cases, or take in the results of other processes",
    "agreement": "say how far judge, local scores and people agree, and the quality in people's terms",
    "regress": "score the golden cases again, and say what moved beyond noise",
    "export": "write reviewed cases with scores, labels and weights: JSON Lines, CSV, Parquet, Ragas",
    "import-labels": "read labels that people gave elsewhere into the review store",
    "calibrate": "refit the local scorers' coefficients on labelled records",
}
"""Every command with its line of help; `collector.commands.<name>` is its module (`-` as `_`)."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 it did not work, 2 wrong usage or configuration, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(
        prog="groundwatch",
        description="Watch the quality of RAG applications in production: screen every answer locally, judge a "
        "weighted sample with an LLM, and report numbers with honest error bars.",
        epilog="Start with `groundwatch demo`, then `groundwatch run`. `groundwatch COMMAND --help` says more.",
    )
    parser.add_argument("--version", action="version", version=f"groundwatch {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    # Only the command that is called is imported: `--help` of one must not pay for the packages of another.
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    try:
        for name, line in COMMANDS.items():
            sub = commands.add_parser(name, help=line, description=line[0].upper() + line[1:] + ".")
            if name == chosen:
                module = importlib.import_module(f"collector.commands.{name.replace('-', '_')}")
                module.add_arguments(sub)
                sub.set_defaults(run=module.run)
        args = parser.parse_args(arguments)
        code: int = args.run(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (`| head`): its right, and no error of ours.
        sys.stderr.close()
        return 0
    return code


if __name__ == "__main__":
    sys.exit(main())

"""`groundwatch config`: the schema, a commented example, or what is in force."""

from __future__ import annotations

import argparse
import json
import sys

import yaml

from collector.commands.common import add_config_argument, read_config
from collector.config import Config
from collector.configfile import ConfigError, example


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--schema", action="store_true", help="JSON Schema of groundwatch.yaml, for editors")
    what.add_argument("--example", action="store_true", help="a commented groundwatch.yaml with every default")
    what.add_argument(
        "--show", action="store_true", help="the configuration in force, file and environment merged (default)"
    )
    add_config_argument(parser)


def run(args: argparse.Namespace) -> int:
    if args.schema:
        sys.stdout.write(json.dumps(Config.model_json_schema(), indent=2) + "\n")
    elif args.example:
        sys.stdout.write(example(Config))
    else:
        try:
            config = read_config(args)
        except ConfigError as error:
            sys.stderr.write(f"{error}\n")
            return 2
        sys.stdout.write(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
    return 0

"""What commands share that ask a running groundwatch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping

import httpx

from collector.commands.common import through_proxies

DEFAULT_URL = "http://127.0.0.1:4318"


class NoAnswer(Exception):
    """The question could not be asked; the text says why and what to change. `code` is the command's exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def add_token_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-env",
        metavar="NAME",
        help="environment variable that holds the page's token, where one is configured",
    )


def ask(
    url: str, path: str, *, token_env: str | None, environment: Mapping[str, str] = os.environ, send: object = None
) -> httpx.Response:
    """GET, or POST of `send` as JSON. Raises NoAnswer when there is no token or nobody answers."""
    headers = {}
    if token_env:
        token = environment.get(token_env)
        if not token:
            raise NoAnswer(f"the environment variable {token_env!r} is not set", 2)
        headers["authorization"] = f"Bearer {token}"
    try:
        return httpx.request(
            "GET" if send is None else "POST",
            url.rstrip("/") + path,
            headers=headers,
            json=send,
            timeout=10,
            trust_env=through_proxies(url),
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise NoAnswer(f"{url}: no answer ({error}): is groundwatch running there? Give another --url") from error

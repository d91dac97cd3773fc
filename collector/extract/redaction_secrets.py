"""Secrets that are known by how they begin: keys and tokens of well-known services, JWT, PEM, credentials in URLs."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from ahocorasick_rs import AhoCorasick

_WORD = r"[A-Za-z0-9_-]"
_GAP = r"(?:\s|\\[nr])*+"
_PEM = (
    r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
    rf"(?:{_GAP}[A-Za-z-]{{1,40}}: [^\n]{{0,200}})*+"  # headers of an encrypted key
    rf"(?:{_GAP}[A-Za-z0-9+/=]{{16,}}+)*+"
    rf"(?:{_GAP}[A-Za-z0-9+/=]{{0,80}}+{_GAP}-----END [A-Z0-9 ]{{0,60}}-----)?"
)
_BODIES: dict[str, str] = {
    # AI services
    "sk-": rf"{_WORD}{{20,}}+",
    "sk_": r"(?:live|test|prod)_[A-Za-z0-9]{10,}+",
    "pk-lf-": rf"{_WORD}{{20,}}+",
    "gsk_": r"[A-Za-z0-9]{30,}+",
    "xai-": r"[A-Za-z0-9]{30,}+",
    "pplx-": r"[A-Za-z0-9]{30,}+",
    "hf_": r"[A-Za-z0-9]{30,}+",
    "lsv2_": r"(?:pt|sk)_[A-Za-z0-9_]{30,}+",
    "r8_": r"[A-Za-z0-9]{30,}+",
    # source code and packages
    "ghp_": r"[A-Za-z0-9]{30,}+",
    "gho_": r"[A-Za-z0-9]{30,}+",
    "ghu_": r"[A-Za-z0-9]{30,}+",
    "ghs_": r"[A-Za-z0-9]{30,}+",
    "ghr_": r"[A-Za-z0-9]{30,}+",
    "github_pat_": r"[A-Za-z0-9_]{22,}+",
    "glpat-": rf"{_WORD}{{20,}}+",
    "npm_": r"[A-Za-z0-9]{36,}+",
    "pypi-": rf"{_WORD}{{50,}}+",
    # clouds
    "AKIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "ASIA": r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    "AIza": rf"{_WORD}{{35}}",
    "ya29.": rf"{_WORD}{{20,}}+",
    "GOCSPX-": rf"{_WORD}{{20,}}+",
    "AccountKey=": r"[A-Za-z0-9+/]{40,}+={0,2}",
    "SharedAccessKey=": r"[A-Za-z0-9+/]{30,}+={0,2}",
    "dop_v1_": r"[a-f0-9]{40,}+",
    "dapi": r"[a-f0-9]{32}(?![A-Za-z0-9])",
    "hvs.": rf"{_WORD}{{20,}}+",
    # messages, mail and money
    "xoxb-": r"[A-Za-z0-9-]{10,}+",
    "xoxp-": r"[A-Za-z0-9-]{10,}+",
    "xoxa-": r"[A-Za-z0-9-]{10,}+",
    "xoxr-": r"[A-Za-z0-9-]{10,}+",
    "xoxs-": r"[A-Za-z0-9-]{10,}+",
    "xapp-": r"[A-Za-z0-9-]{10,}+",
    "hooks.slack.com/services/": r"[A-Za-z0-9/]{20,}+",
    "SG.": rf"{_WORD}{{16,60}}+\.{_WORD}{{16,}}+",
    "key-": r"[a-f0-9]{32}(?![A-Za-z0-9])",
    "rk_": r"(?:live|test)_[A-Za-z0-9]{10,}+",
    "whsec_": r"[A-Za-z0-9+/=]{20,}+",
    "shpat_": r"[a-f0-9]{32}(?![A-Za-z0-9])",
    "sq0csp-": rf"{_WORD}{{20,}}+",
    # observability and the rest
    "glsa_": r"[A-Za-z0-9_]{30,}+",
    "glc_": r"[A-Za-z0-9+/=]{30,}+",
    "NRAK-": r"[A-Z0-9]{20,}+",
    "PMAK-": r"[a-f0-9-]{30,}+",
    "lin_api_": r"[A-Za-z0-9]{30,}+",
    "ntn_": r"[A-Za-z0-9]{30,}+",
    "dp.pt.": r"[A-Za-z0-9]{30,}+",
    "AGE-SECRET-KEY-1": r"[A-Z0-9]{50,}+",
    # forms
    "eyJ": rf"(?<![_-]eyJ){_WORD}{{8,}}+\.{_WORD}{{8,}}+(?:\.{_WORD}*+)?",
    "-----BEGIN ": _PEM,
}
"""What follows a known beginning. Repetitions give nothing back, and no match is looked for inside of another, so that
no text costs more than its length; a token that may fail late begins where no word character is before it."""

_KEPT = {
    "Bearer ": re.compile(r"[A-Za-z0-9._~+/-]{20,2000}+=*"),
    "bearer ": re.compile(r"[A-Za-z0-9._~+/-]{20,2000}+=*"),
    "Basic ": re.compile(r"[A-Za-z0-9+/]{12,2000}+={0,2}"),
    "://": re.compile(r"[^\s/:@?#]{0,200}+:[^\s/@]{1,500}+(?=@)"),
}
"""Beginnings that stay, with what is secret behind them."""

_ASSIGNED = re.compile(
    r"(?:(?:(?<=api)|(?<=api[_-])|(?<=access[_-])|(?<=secret[_-])|(?<=account[_-]))key|"
    r"(?:(?<=auth)|(?<=auth[_-])|(?<=access)|(?<=access[_-])|(?<=refresh)|(?<=refresh[_-]))token|"
    r"secret(?:[_-]?key)?|password|passwd|passwort|pwd|kennwort|contraseña)"
    r"[\"']?\s{0,3}(?:is|ist|es|est|[:=])\s{0,3}[\"']?(?P<value>[^\s\"'<>,;]{5,199}[^\s\"'<>,;.?:)\]])",
    re.IGNORECASE,
)
"""From a hint on: a word for a secret, what gives it, and the value."""
_ASSIGNMENT_HINTS = AhoCorasick(
    [
        one
        for word in ("key", "secret", "token", "pass", "pwd", "kennwort", "contrase")
        for one in (word, word.upper(), word.capitalize())
    ]
)


class Secrets:
    """Finds secrets in a text; immutable."""

    def __init__(self) -> None:
        self._patterns: list[tuple[str | None, re.Pattern[str]]] = [
            *((None, re.compile(body)) for body in _BODIES.values()),
            *_KEPT.items(),
        ]
        self._begins = AhoCorasick([*_BODIES, *_KEPT])

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Start and end of each, in no order; they may overlap."""
        done = 0
        for number, start, end in self._begins.find_matches_as_indexes(text, overlapping=True):
            kept, pattern = self._patterns[number]
            if start < done:
                continue
            if kept != "://" and start and text[start - 1].isalnum():
                continue
            found = pattern.match(text, end)
            if found is None or (kept in _SURE and not _SURE[kept](found[0])):
                continue
            done = found.end()
            yield (end if kept else start), done
        for _, start, _ in _ASSIGNMENT_HINTS.find_matches_as_indexes(text):
            assigned = _ASSIGNED.match(text, start)
            if assigned is not None and _is_random(assigned["value"]):
                yield assigned.span("value")


def _is_random(text: str) -> bool:
    """Holds a digit and a letter: "token: embeddings" and "bearer certificates" are words."""
    return any(one.isdigit() for one in text) and any(one.isalpha() for one in text)


def _is_login(text: str) -> bool:
    """A name and a password with a colon between them in base64 (RFC 7617): "Basic understanding" is words."""
    try:
        return b":" in base64.b64decode(text, validate=True)
    except ValueError:
        return False


_SURE = {"Bearer ": _is_random, "bearer ": _is_random, "Basic ": _is_login}

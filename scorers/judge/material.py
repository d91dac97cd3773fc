"""The data part of a prompt: the interaction's texts behind a fence that they can not forge.

Every text stands between an opening and a closing line that carry a nonce. The nonce is derived from the
interaction and a secret of the process, so it is the same in all calls of one interaction (providers cache
prompts by their first bytes), can not be guessed by who wrote the texts, and occurs in none of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from scorers.interaction import Field, Interaction
from scorers.judge.tokens import estimate_tokens

ORDER = (Field.CONTEXTS, Field.QUESTION, Field.RESPONSE, Field.REFERENCE, Field.HISTORY)
"""The order of parts in every prompt: what most questions share comes first."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL_TOKEN = re.compile(
    r"<(?=\|[^|<>\s]{1,40}\|>|/?s>|/?(?:start|end)_of_(?:turn|text)>|｜[^<>]{1,40}｜>)|\[(?=/?INST\])"
)


def clean(text: str) -> str:
    """The text as the judge may see it.

    Lone surrogates become U+FFFD (they have no UTF-8). Characters that nobody sees (tags, bidi controls, zero
    width space, control codes) are left out; joiners stay, since several scripts need them. Control tokens of
    chat templates are broken up by a space, since some servers obey them inside of content.
    """
    if text.isascii():
        if "<" not in text and "[" not in text and text.isprintable():
            return text
    elif _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _CONTROL_TOKEN.sub(lambda match: match.group() + " ", _HIDDEN.sub("", text))


@dataclass(frozen=True, slots=True)
class Material:
    """The texts of one interaction, ready for a prompt.

    `passages` are (rank, text), ranks from 1; `texts` the other parts. A window is a material with fewer
    passages, or with a slice of one.
    """

    nonce: str
    passages: tuple[tuple[int, str], ...] = ()
    texts: Mapping[Field, str] = field(default_factory=dict)

    @classmethod
    def of(cls, interaction: Interaction, *, secret: bytes) -> Material:
        passages = tuple(
            (rank, clean(passage.text))
            for rank, passage in enumerate(interaction.contexts or (), start=1)
            if passage.text.strip()
        )
        texts = {
            part: clean(text)
            for part, text in (
                (Field.QUESTION, interaction.question),
                (Field.RESPONSE, interaction.response),
                (Field.REFERENCE, interaction.reference),
                (Field.HISTORY, "\n".join(f"{turn.role}: {turn.text}" for turn in interaction.history)),
            )
            if text
        }
        return cls(
            _nonce(interaction.id, [*texts.values(), *(text for _, text in passages)], secret), passages, texts
        )

    def fenced(self, name: str, text: str) -> str:
        """One fenced block. A nonce that came back through the judge is taken out of `text`."""
        return f"<{self.nonce} {name}>\n{text.replace(self.nonce, '')}\n</{self.nonce}>"

    def render(self, parts: Iterable[Field], passages: tuple[int, ...] | None = None) -> str:
        """The fenced blocks of `parts`, in the fixed order; of the contexts only `passages`, if given."""
        wanted = set(parts)
        blocks: list[str] = []
        for part in ORDER:
            if part not in wanted:
                continue
            if part is Field.CONTEXTS:
                chosen = [(r, t) for r, t in self.passages if passages is None or r in passages]
                blocks += [self.fenced(f"passage {rank}", text) for rank, text in chosen]
                if not chosen:
                    blocks.append(self.fenced("passages", "(none)"))
            elif part in self.texts:
                blocks.append(self.fenced(part.value, self.texts[part]))
        return "\n".join(blocks)

    def content(self, parts: Iterable[Field], passages: tuple[int, ...] | None = None) -> str:
        """What `render` shows, without the nonce: equal contents get equal verdicts from the cache."""
        return replace(self, nonce="-").render(parts, passages)

    def windows(self, part: Field, tokens: int) -> list[Material]:
        """Cut `part` in pieces of at most `tokens` (estimated) each; nothing is left out.

        Whole passages are kept together where they fit; a passage that is too long by itself, and any other
        text, is cut at white space with an overlap, so that a fact on a border stands whole in one window.
        """
        if part is not Field.CONTEXTS:
            return [
                replace(self, texts={**self.texts, part: piece})
                for piece in _cut(self.texts.get(part, ""), tokens)
            ]
        pieces = [
            (rank, piece)
            for rank, text in self.passages
            for piece in ([text] if estimate_tokens(text) <= tokens else _cut(text, tokens))
        ]
        windows: list[list[tuple[int, str]]] = [[]]
        used = 0
        for rank, piece in pieces:
            size = estimate_tokens(piece) + 20
            if windows[-1] and used + size > tokens:
                windows.append([])
                used = 0
            windows[-1].append((rank, piece))
            used += size
        return [replace(self, passages=tuple(window)) for window in windows]


def _nonce(interaction_id: str, texts: list[str], secret: bytes) -> str:
    """Short, since it stands around every block: a text that holds it only makes the next one be taken."""
    whole = hashlib.blake2b(key=secret[:64], digest_size=16)
    for text in (interaction_id, *texts):
        whole.update(text.encode("utf-8", "surrogatepass") + b"\0")
    seed = whole.digest()
    for attempt in range(1000):
        nonce = "d" + hashlib.blake2b(seed + attempt.to_bytes(2, "big"), digest_size=3).hexdigest()
        if not any(nonce in text for text in texts):
            return nonce
    raise ValueError("a thousand keyed nonces occur in the text")  # pragma: no cover  # 2**-24 each


def _cut(text: str, tokens: int) -> list[str]:
    if estimate_tokens(text) <= tokens:
        return [text]
    per_token = len(text) / estimate_tokens(text)
    size = max(64, int(tokens * per_token * 0.9))
    overlap = min(200, size // 8)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            space = max(text.rfind(mark, start + size // 2, end) for mark in (" ", "\n", "。", "."))
            end = space + 1 if space > 0 else end
        pieces.append(text[start:end])
        if end == len(text):
            break
        start = end - overlap
    return pieces

"""An operator's own ONNX entailment or hallucination-detector model, by local path.

The file takes the usual inputs of a sequence-pair classifier (`input_ids`, `attention_mask`, and
`token_type_ids` where it has it) and its first output holds one row of logits, or one number, per pair of
(premise = a window of context, hypothesis = a response sentence).
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from scorers.errors import BadScorerOptions
from scorers.local.encoder import INSTALL, ModelMissing, open_session, wordpiece
from scorers.local.reading import Reading

if TYPE_CHECKING:
    import tokenizers

_BATCH = 16


@dataclass(frozen=True, slots=True)
class PairModelOptions:
    """Where the model is and how to read it.

    `model` is an ONNX file, `tokenizer` a `tokenizer.json` or a WordPiece `vocab.txt`. `supported` is the column
    of the logits that means "entailed" or "consistent" (of a softmax over all columns; a sigmoid where there is
    one column). `window_tokens` bounds the premise, `windows` how many premises are tried for each sentence.
    """

    model: Path
    tokenizer: Path
    supported: int = 0
    window_tokens: int = 160
    max_tokens: int = 256
    windows: int = 3
    threads: int = 1


class PairModel:
    """Support of sentences by context windows, in [0, 1]: the best of the `windows` lexically nearest."""

    def __init__(self, options: PairModelOptions) -> None:
        self._options = options
        try:
            content = options.model.read_bytes()
            vocabulary = options.tokenizer.read_text("utf-8")
        except OSError as error:
            raise ModelMissing(f"pair model {error.filename}: {error.strerror}; check the path") from error
        except UnicodeDecodeError as error:
            raise BadScorerOptions(
                f"{options.tokenizer}: no text in UTF-8; give a tokenizer.json or vocab.txt"
            ) from error
        self._session = open_session(content, options.threads, str(options.model))
        try:
            self._tokenizer = _tokenizer(vocabulary, whole=options.tokenizer.suffix == ".json")
        except ModelMissing:
            raise
        except Exception as error:  # tokenizers raises bare exceptions of its own
            raise BadScorerOptions(
                f"{options.tokenizer}: is no tokenizer.json and no vocab.txt: {error}"
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(options.max_tokens, strategy="longest_first")
        self._inputs = {node.name for node in self._session.get_inputs()}
        known = {"input_ids", "attention_mask", "token_type_ids"}
        if "input_ids" not in self._inputs or self._inputs - known:
            raise BadScorerOptions(
                f"pair model {options.model}: its inputs are {sorted(self._inputs)}, of which {sorted(known)} are "
                "known and input_ids is needed; export it as a sequence-pair classifier"
            )
        self._digest = hashlib.sha256(content).hexdigest()

    @property
    def version(self) -> str:
        return f"pair-{self._digest[:8]}"

    def support(self, hypotheses: Sequence[str], contexts: Sequence[Reading]) -> list[float]:
        """The support of each hypothesis; 0 where there is no context."""
        windows = [window for reading in contexts for window in self._windows(reading)]
        if not windows:
            return [0.0] * len(hypotheses)
        pairs: list[tuple[int, str, str]] = []
        for number, hypothesis in enumerate(hypotheses):
            wanted = set(hypothesis.casefold().split())
            nearest = heapq.nsmallest(
                self._options.windows,
                windows,
                key=lambda window: (-len(wanted & window[1]), window[0]),  # used at once
            )
            pairs.extend((number, premise, hypothesis) for premise, _ in nearest)
        best = [0.0] * len(hypotheses)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][1]) + len(pairs[place][2]))
        for start in range(0, len(order), _BATCH):
            chunk = [pairs[place] for place in order[start : start + _BATCH]]
            for (number, _, _), value in zip(chunk, self._run([(p, h) for _, p, h in chunk]), strict=True):
                best[number] = max(best[number], float(value))
        return best

    def _windows(self, reading: Reading) -> list[tuple[str, set[str]]]:
        found: list[tuple[str, set[str]]] = []
        held: list[str] = []
        size = 0
        for sentence in reading.sentences:
            if held and size + len(sentence.words) > self._options.window_tokens:
                found.append(_window(held))
                held, size = held[-1:], 0  # one sentence of overlap
            held.append(sentence.text)
            size += len(sentence.words)
        if held:
            found.append(_window(held))
        return found

    def _run(self, pairs: Sequence[tuple[str, str]]) -> npt.NDArray[np.float64]:
        encodings = self._tokenizer.encode_batch(list(pairs))
        width = max(1, *(len(encoding.ids) for encoding in encodings))
        feed = {name: np.zeros((len(pairs), width), np.int64) for name in self._inputs}
        for row, encoding in enumerate(encodings):
            size = len(encoding.ids)
            feed["input_ids"][row, :size] = encoding.ids
            if "attention_mask" in feed:
                feed["attention_mask"][row, :size] = 1
            if "token_type_ids" in feed:
                feed["token_type_ids"][row, :size] = encoding.type_ids
        logits = np.asarray(self._session.run(None, feed)[0], np.float64)
        logits = logits.reshape(len(pairs), -1)
        column = self._options.supported
        if not 0 <= column < logits.shape[1]:
            raise BadScorerOptions(
                f"pair model {self._options.model}: supported = {column}, but it gives {logits.shape[1]} columns"
            )
        logits = np.nan_to_num(logits, nan=0.0, posinf=700.0, neginf=-700.0)
        if logits.shape[1] == 1:
            single: npt.NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits[:, 0], -700, 700)))
            return single
        grown = np.exp(logits - logits.max(axis=1, keepdims=True))
        return np.asarray(grown[:, column] / grown.sum(axis=1), np.float64)


def _tokenizer(text: str, *, whole: bool) -> tokenizers.Tokenizer:
    if not whole:
        return wordpiece(text.rstrip("\n").split("\n"))
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ModelMissing(f"tokenizers is not installed; {INSTALL}") from error
    return Tokenizer.from_str(text)


def _window(held: Sequence[str]) -> tuple[str, set[str]]:
    text = " ".join(held)
    return text, set(text.casefold().split())

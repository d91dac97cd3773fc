"""Local scorers: no network, no key. `build` makes them, sharing one engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scorers.errors import UnknownScorer
from scorers.scorer import LocalScorer, ScorerInfo, Tier

if TYPE_CHECKING:
    from scorers.local.base import LocalBase
    from scorers.local.entailment import PairModelOptions

DEFAULT = (
    "faithfulness",
    "groundedness",
    "context_relevance",
    "passage_relevance",
    "response_relevancy",
    "noncommittal",
    "citations",
    "language_match",
    "context_duplication",
    "context_count",
    "context_incomplete",
)
"""Every local scorer, in the order of the results."""


def _classes() -> dict[str, type[LocalBase]]:
    from scorers.local.citations import Citations
    from scorers.local.context_count import ContextCount
    from scorers.local.context_duplication import ContextDuplication
    from scorers.local.context_incomplete import ContextIncomplete
    from scorers.local.context_relevance import ContextRelevance
    from scorers.local.faithfulness import Faithfulness
    from scorers.local.groundedness import Groundedness
    from scorers.local.language_match import LanguageMatch
    from scorers.local.noncommittal import Noncommittal
    from scorers.local.passage_relevance import PassageRelevance
    from scorers.local.response_relevancy import ResponseRelevancy

    found: tuple[type[LocalBase], ...] = (
        Faithfulness,
        Groundedness,
        ContextRelevance,
        PassageRelevance,
        ResponseRelevancy,
        Noncommittal,
        Citations,
        LanguageMatch,
        ContextDuplication,
        ContextCount,
        ContextIncomplete,
    )
    return {scorer.name: scorer for scorer in found}


def describe(names: Sequence[str] = DEFAULT, tier: Tier | str = Tier.FAST) -> list[ScorerInfo]:
    """What the named scorers say of themselves, without loading any model. Raises UnknownScorer."""
    known = _known(names)
    return [known[name].describe(Tier(tier)) for name in names]


def fingerprints(
    names: Sequence[str] = DEFAULT, tier: Tier | str = Tier.FAST, *, table: Path | None = None
) -> list[str]:
    """The fingerprints that results of the named scorers of a tier carry, in order, without loading the encoder.
    `table` as for `build`. Raises UnknownScorer, BadScorerOptions."""
    from scorers.local.engine import engine_version
    from scorers.local.table import load_table

    known = _known(names)
    tier = Tier(tier)
    models: tuple[str, ...] = ()
    if tier is Tier.FULL:
        from scorers.local.encoder import ENCODER_VERSION  # brings NumPy, which the fast tier does without

        models = (ENCODER_VERSION,)
    engine = engine_version(load_table(table), *models)
    return [known[name].fingerprint(tier, engine) for name in names]


def _known(names: Sequence[str]) -> dict[str, type[LocalBase]]:
    known = _classes()
    for name in names:
        if name not in known:
            raise UnknownScorer(f"no local scorer is called {name!r}; there are: {', '.join(known)}")
    return known


def build(
    names: Sequence[str] = DEFAULT,
    tier: Tier | str = Tier.FAST,
    *,
    table: Path | None = None,
    encoder: Path | None = None,
    pair_model: PairModelOptions | None = None,
    threads: int = 1,
    cache_bytes: int = 64 * 1024 * 1024,
) -> list[LocalScorer]:
    """The named scorers of a tier over one engine, so that readings and features are shared.

    `table` is an operator's own calibration table, `encoder` a path to the encoder's file where the data package
    is not installed, `pair_model` an own entailment model, `threads` bounds ONNX Runtime, `cache_bytes` the
    passage caches (half of it for vectors in the full tier). Raises UnknownScorer, ModelMissing, BadScorerOptions.
    """
    from scorers.local.engine import Engine
    from scorers.local.reading import Reader
    from scorers.local.table import load_table

    known = _known(names)
    tier = Tier(tier)
    made, reads = None, None
    if tier is Tier.FULL:
        from scorers.local.encoder import Encoder  # brings NumPy, which the fast tier does without

        made = Encoder(path=encoder, threads=threads, cache_bytes=cache_bytes // 2)
    if pair_model is not None:
        from scorers.local.entailment import PairModel  # likewise

        reads = PairModel(pair_model)
    reader = Reader(cache_bytes=cache_bytes if made is None else cache_bytes // 2)
    engine = Engine(load_table(table), tier=tier, reader=reader, encoder=made, pair_model=reads)
    return [known[name](engine) for name in names]

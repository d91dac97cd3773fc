"""The full tier: the encoder, its checks, and what it adds. Left out where the extra is not installed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from scorers.errors import BadScorerOptions
from scorers.interaction import Interaction
from scorers.local import DEFAULT, build
from scorers.local.encoder import DIMENSION, Encoder, ModelMissing, model_path
from scorers.local.reading import Reader
from scorers.outcome import Result, Score
from scorers.scorer import Tier
from tests.unit.scorers_local.test_local_scorers import KOREAN, WARRANTY


def _installed() -> bool:
    try:
        import onnxruntime  # noqa: F401  # only whether it can be imported
        import tokenizers  # noqa: F401  # likewise

        return model_path().exists()
    except (ImportError, ModelMissing):
        return False


needs_extra = pytest.mark.skipif(not _installed(), reason="the extra [local] is not installed")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


def full(names: tuple[str, ...], interaction: Interaction) -> dict[str, Result]:
    return {r.scorer: r for scorer in build(names, Tier.FULL) for (r,) in scorer.score([interaction])}


@needs_extra
def test_similar_sentences_have_similar_vectors_and_the_cache_holds(encoder: Encoder) -> None:
    reader = Reader()
    reading = reader.read("The hotel is paid by the firm. The company pays for the hotel. Bees make honey.", 1000)
    first, second, bees = encoder.vectors(reading)
    assert first.shape == (DIMENSION,)
    assert np.linalg.norm(first) == pytest.approx(1.0, abs=1e-5)
    assert first @ second > 0.7 > 0.3 > first @ bees
    before = encoder.encoded
    again = encoder.vectors(reader.read("Bees make honey. The hotel is paid by the firm.", 1000))
    assert encoder.encoded == before
    assert again[0] @ bees == pytest.approx(1.0, abs=1e-5)


@needs_extra
def test_a_vector_does_not_depend_on_its_batch(encoder: Encoder) -> None:
    texts = [f"Sentence number {n} speaks of {'very ' * n}different things." for n in range(40)]
    together = encoder._encode(texts)
    alone = [encoder._encode([text])[0] for text in texts]
    assert np.abs(np.array(together) - np.array(alone)).max() < 1e-4


@needs_extra
def test_the_full_tier_says_so_and_falls_back_for_other_languages() -> None:
    english, korean = full(DEFAULT, WARRANTY), full(DEFAULT, KOREAN)
    assert english["faithfulness"].tier is Tier.FULL and "minilm" in english["faithfulness"].fingerprint
    assert english["faithfulness"].flags == ()
    assert "lexical" in korean["faithfulness"].flags and "lexical" not in korean["context_count"].flags
    (fast,) = build(["faithfulness"])[0].score([KOREAN])[0]
    assert korean["faithfulness"].outcome == fast.outcome


@needs_extra
def test_the_encoder_sees_a_paraphrase_that_words_do_not() -> None:
    paraphrase = replace(WARRANTY, question="For how many months does the X200 guarantee run?")
    outcomes = [
        build(["context_relevance"], tier)[0].score([paraphrase])[0][0].outcome for tier in (Tier.FAST, Tier.FULL)
    ]
    fast, better = outcomes
    assert isinstance(fast, Score) and isinstance(better, Score)
    assert better.value > fast.value


@needs_extra
def test_another_file_in_the_place_of_the_model_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "model.onnx"
    place.write_bytes(b"not the model")
    with pytest.raises(ModelMissing, match="SHA-256"):
        Encoder(path=place)


def test_a_missing_model_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"groundwatch\[local\]") as missing:
        build(["faithfulness"], Tier.FULL, encoder=tmp_path / "absent.onnx")
    assert isinstance(missing.value, BadScorerOptions)

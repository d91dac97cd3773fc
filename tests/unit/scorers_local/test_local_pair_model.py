"""An operator's own ONNX pair model by path, with a tiny model made here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="the extra [local] is not installed")
pytest.importorskip("tokenizers", reason="the extra [local] is not installed")

from scorers.errors import BadScorerOptions
from scorers.interaction import Interaction, Passage
from scorers.local import build
from scorers.local.encoder import ModelMissing
from scorers.local.entailment import PairModel, PairModelOptions
from scorers.local.reading import Reader
from scorers.outcome import Score
from tests.unit.scorers_local.tiny_onnx import pair_classifier

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "not", "the", "warranty", "covers", "batteries", "."]
NOT = VOCABULARY.index("not")


@pytest.fixture
def options(tmp_path: Path) -> PairModelOptions:
    model, vocabulary = tmp_path / "pair.onnx", tmp_path / "vocab.txt"
    model.write_bytes(pair_classifier(NOT))
    vocabulary.write_text("\n".join(VOCABULARY))
    return PairModelOptions(model, vocabulary)


BASE = Interaction("1", "q?", (Passage("The warranty covers batteries."),), "The warranty covers batteries.")


def test_the_model_gives_the_support_and_evidence_stays(options: PairModelOptions) -> None:
    faithfulness, groundedness = build(["faithfulness", "groundedness"], pair_model=options)
    denied = replace(BASE, response="The warranty covers batteries. The warranty covers not batteries.")
    (fine,), (wrong,) = faithfulness.score([BASE, denied])
    assert isinstance(fine.outcome, Score) and isinstance(wrong.outcome, Score)
    assert fine.outcome.value == pytest.approx(0.9526, abs=1e-3)  # softmax of (3, 0)
    assert wrong.outcome.value == pytest.approx((0.9526 + 0.0474) / 2, abs=1e-3)
    assert "pair-" in fine.fingerprint
    assert len(wrong.evidence["sentences"]) == 2  # type: ignore[arg-type]  # evidence is JSON-ready data
    ((weakest,),) = groundedness.score([denied])
    assert isinstance(weakest.outcome, Score)
    assert weakest.outcome.value == pytest.approx(0.0474, abs=1e-3)


def test_the_best_window_counts_and_none_is_zero(options: PairModelOptions) -> None:
    model = PairModel(replace(options, window_tokens=4))
    reader = Reader()
    both = reader.read("Not not not not. The warranty covers not batteries.", 1000)
    assert model.support(["The warranty covers not batteries."], [both])[0] > 0.9
    assert model.support(["The warranty."], []) == [0.0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer.json", b'{"version": 1}'),
        ("tokenizer.json", b"text"),
        ("vocab.txt", b"a\nb"),
        ("v.txt", b"\xff\xfe"),
    ],
)
def test_what_is_no_tokenizer_is_named(
    options: PairModelOptions, tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / "other" / name
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(BadScorerOptions, match=name):
        PairModel(replace(options, tokenizer=path))


def test_one_column_is_a_sigmoid(options: PairModelOptions) -> None:
    options.model.write_bytes(pair_classifier(NOT, columns=1))
    model = PairModel(options)
    (value,) = model.support(["The warranty covers batteries."], [Reader().read("The warranty covers.", 100)])
    assert value == pytest.approx(0.9526, abs=1e-3)


def test_wrong_files_are_named(options: PairModelOptions, tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"absent\.onnx"):
        PairModel(replace(options, model=tmp_path / "absent.onnx"))
    with pytest.raises(BadScorerOptions, match="supported = 5"):
        PairModel(replace(options, supported=5)).support(["The warranty."], [Reader().read("The warranty.", 100)])
    options.model.write_bytes(pair_classifier(NOT, input_name="pixels"))
    with pytest.raises(BadScorerOptions, match="pixels"):
        PairModel(options)
    options.model.write_bytes(b"junk")
    with pytest.raises(BadScorerOptions, match="can not load"):
        PairModel(options)

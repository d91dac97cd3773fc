"""The review's README names every option."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

import collector.review
from collector.review.options import ControlOptions, Options, PickOptions

README = (Path(collector.review.__file__).parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("model", [Options, PickOptions, ControlOptions])
def test_every_option_is_named(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        assert f"`{name}`" in README or f".{name}`" in README, name
        assert field.description

"""The package's README names every option and every convention."""

from __future__ import annotations

from pathlib import Path

import collector.extract
from collector.extract.conventions import conventions
from collector.extract.options import Options, PromptPattern, RecordPaths

README = (Path(collector.extract.__file__).parent / "README.md").read_text(encoding="utf-8")


def test_every_option_is_described() -> None:
    for model in (Options, PromptPattern, RecordPaths):
        for name, field in model.model_fields.items():
            assert f"`{name}`" in README
            assert field.description


def test_every_convention_is_described() -> None:
    for convention in conventions(Options()):
        assert f"| `{convention.name}` |" in README
        assert convention.content_switch in README

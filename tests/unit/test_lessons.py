"""Each row of tests/LESSONS.md names tests, and they exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROWS = [
    line for line in (TESTS / "LESSONS.md").read_text(encoding="utf-8").splitlines() if re.match(r"\| \d", line)
]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.split(" |")[0].strip("| ")) for row in ROWS])
def test_the_tests_that_a_row_names_exist(row: str) -> None:
    named = re.findall(r"`([^`\s]+\.py)::(test_\w+)`", row)
    assert named, row
    for file, test in named:
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions = {
            node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert test in functions, f"{file} has no {test}: name in LESSONS.md the test that holds this row now"

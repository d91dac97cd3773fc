"""What all tests share: services that may be missing are asked for in one place."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

Program = Callable[[str], str]


@pytest.fixture(scope="session")
def program() -> Program:
    """Path of a program from the system's packages. Missing: the test is skipped with the reason, and counted in
    the closing summary; where GROUNDWATCH_TEST_REQUIRE=all (as in .ci/run) it fails instead."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            reason = (
                f"program {name!r} is not installed (Debian: apt-get install prometheus prometheus-alertmanager)"
            )
            if os.environ.get("GROUNDWATCH_TEST_REQUIRE") == "all":
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return find

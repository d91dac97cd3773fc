"""Scorers of the fast tier, built once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scorers.interaction import Interaction
from scorers.local import DEFAULT, build
from scorers.outcome import Result

Ask = Callable[[str, Interaction], Result]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Scores one interaction by one named scorer of the fast tier."""
    scorers = dict(zip(DEFAULT, build(), strict=True))

    def one(name: str, interaction: Interaction) -> Result:
        ((result,),) = scorers[name].score([interaction])
        return result

    return one

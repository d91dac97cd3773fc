"""The calibration table: coefficients of the small logistic models, as data with provenance."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from scorers.errors import BadScorerOptions

FORMAT = 1
"""Version of the file's form; another form is refused."""


@dataclass(frozen=True, slots=True)
class Model:
    """A logistic model. Coefficients are in the units of the features; none of a signed feature is below 0."""

    features: tuple[str, ...]
    coefficients: tuple[float, ...]
    intercept: float

    def probability(self, values: Sequence[float]) -> float:
        """Calibrated probability in (0, 1) for one row of features."""
        logit = self.intercept + math.fsum(c * v for c, v in zip(self.coefficients, values, strict=True))
        if logit >= 0:
            return 1.0 / (1.0 + math.exp(-min(logit, 700.0)))
        grown = math.exp(max(logit, -700.0))
        return grown / (1.0 + grown)


@dataclass(frozen=True, slots=True)
class Table:
    """All models by name (`support.fast`, `passage.full`, ...). `version` is part of every local fingerprint;
    `fitted_on` lists the sets with licence and rows."""

    version: str
    models: Mapping[str, Model]
    fitted_on: Sequence[Mapping[str, object]]

    def model(self, name: str, features: Sequence[str]) -> Model:
        """The model, checked against the features that the code computes."""
        model = self.models.get(name)
        if model is None:
            raise BadScorerOptions(
                f"calibration table {self.version}: no model {name!r}; refit with 'groundwatch calibrate'"
            )
        if model.features != tuple(features):
            raise BadScorerOptions(
                f"calibration table {self.version}: model {name!r} was fitted on other features than this version "
                "computes; refit with 'groundwatch calibrate'"
            )
        return model


def parse_table(text: str, place: str) -> Table:
    """Read a table; `place` names it in errors."""
    try:
        raw = json.loads(text)
        if raw["format"] != FORMAT:
            raise BadScorerOptions(f"{place}: form {raw['format']!r} is not {FORMAT}; use a table of this version")
        models = {
            name: Model(
                tuple(str(feature) for feature in model["features"]),
                tuple(float(value) for value in model["coefficients"]),
                float(model["intercept"]),
            )
            for name, model in raw["models"].items()
        }
        table = Table(str(raw["version"]), models, list(raw["fitted_on"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadScorerOptions(f"{place}: not a calibration table: {error!r}") from error
    for name, model in models.items():
        if len(model.features) != len(model.coefficients) or not all(
            math.isfinite(value) for value in (*model.coefficients, model.intercept)
        ):
            raise BadScorerOptions(f"{place}: model {name!r} needs one finite coefficient for each feature")
    return table


def load_table(path: Path | None = None) -> Table:
    """The table shipped with the package, or the operator's own."""
    if path is None:
        shipped = resources.files("scorers.local").joinpath("data/calibration.json")
        return parse_table(shipped.read_text("utf-8"), "data/calibration.json")
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise BadScorerOptions(f"calibration table {path}: {error.strerror}; check the path") from error
    return parse_table(text, str(path))

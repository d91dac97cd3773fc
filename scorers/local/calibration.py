"""Refitting the calibration table from labelled sets, and the report that says how far to trust it.

Support is fitted on groundedness rows, on their swaps (a supported response held against another document's
contexts) and on planted faults; passage and response relevance on their own tasks. Cross-validation keeps all rows
of a source document in one fold; beside it every set is scored by a model that never saw the set.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from scorers.interaction import Interaction
from scorers.local.engine import Engine, feature_names
from scorers.local.fitting import (
    FOLDS,
    Floats,
    Rows,
    auroc,
    auroc_interval,
    balanced_accuracy,
    calibration_error,
    fit,
    fold_of,
    joined,
    predict,
    spearman,
)
from scorers.local.labelled import LabelledSet
from scorers.local.planted import PLANTERS, donor_of
from scorers.local.table import FORMAT, Model, Table
from scorers.scorer import Tier

MODEL_OF_TASK = {"groundedness": "support", "context_relevance": "passage", "response_relevancy": "response"}
UNSIGNED = frozenset({"short"})
"""Features whose sign the data decides: length is neither support nor relevance."""
SWAP_SHARE, PLANTED_SHARE = 0.3, 0.1
"""Weight of a set's swaps and planted faults beside its own rows."""
_PLANTED = ("number", "unit", "date", "name", "negation", "inserted")


@dataclass(frozen=True, slots=True)
class SetReport:
    """How one set was predicted by one model of one tier.

    `held_out_documents` comes from cross-validation by document, `held_out_set` from a model that never saw the
    set. AUROC (Spearman for graded sets) with a 95 % interval, balanced accuracy at 0.5, calibration error.
    `swapped` and `planted` are the AUROC of supported responses against the same with another document's contexts,
    and against the same with a planted fault. Sets of supported responses only have no AUROC of their own.

    Where a table in force was given, `in_force` is its AUROC (or Spearman) on the same rows, `loss_change` the mean
    difference of the logarithmic loss (held-out documents less the table in force; under 0 is better, Good 1952) and
    `loss_change_se` that mean's standard error.
    """

    name: str
    tier: str
    model: str
    licence: str
    fitted: bool
    rows: int
    unscored: int
    measure: str
    held_out_documents: float
    low: float
    high: float
    held_out_set: float
    balanced_accuracy: float
    calibration_error: float
    swapped: float | None = None
    planted: float | None = None
    in_force: float | None = None
    loss_change: float | None = None
    loss_change_se: float | None = None

    @property
    def better(self) -> bool:
        """Whether held-out rows say that refitting helped, by more than one standard error (Breiman et al. 1984)."""
        return (
            self.loss_change is not None
            and self.loss_change_se is not None
            and self.loss_change + self.loss_change_se < 0
        )


@dataclass(slots=True)
class _Prepared:
    about: LabelledSet
    own: Rows
    unscored: int
    swaps: Rows | None = None
    planted: Rows | None = None

    def fitting(self) -> list[Rows]:
        """The parts with weights that make the set count as its weight times 400 rows."""
        shares = ((self.own, 1.0), (self.swaps, SWAP_SHARE), (self.planted, PLANTED_SHARE))
        return [
            replace(part, weights=part.weights * (400.0 * share * self.about.weight / part.weights.sum()))
            for part, share in shares
            if part is not None and len(part.labels)
        ]


def _rows(
    features: Sequence[Sequence[float]],
    labels: Sequence[float],
    groups: Sequence[str],
    weights: Sequence[float] | None = None,
) -> Rows:
    return Rows(
        np.array(features, dtype=float),
        np.array(labels, dtype=float),
        np.ones(len(labels)) if weights is None else np.array(weights, dtype=float),
        np.array([fold_of(group) for group in groups], dtype=np.int64),
    )


def _features(engine: Engine, model: str, interactions: Sequence[Interaction]) -> list[list[float] | None]:
    found: list[list[float] | None] = []
    for exchange in engine.exchanges(interactions):
        values: list[float] | None = None
        if engine.tier is Tier.FULL and not engine.encodes(exchange):
            pass  # the fast models score these
        elif model == "support":
            if exchange.response and exchange.contexts and engine.refusal(exchange).label != "yes":
                values = engine.support_summary(exchange) if engine.support(exchange) else None
        elif model == "passage":
            if exchange.question and exchange.contexts and len(exchange.contexts) == 1:
                values = engine.passage_features(exchange)[0]
        elif exchange.question and exchange.response and engine.refusal(exchange).label != "yes":
            values = engine.response_features(exchange)
        found.append(values)
    return found


def _prepare(engine: Engine, model: str, about: LabelledSet) -> _Prepared:
    interactions = [row.interaction for row in about.rows]
    values = _features(engine, model, interactions)
    kept = [place for place, row in enumerate(values) if row is not None]
    own = _rows(
        [row for row in values if row is not None],
        [about.rows[place].label for place in kept],
        [about.rows[place].group for place in kept],
        [about.rows[place].weight for place in kept],
    )
    prepared = _Prepared(about, own, len(values) - len(kept))
    if model == "support":
        clean = [row for row in about.rows if row.label == 1.0]
        groups = [row.group for row in clean]
        supported = [row.interaction for row in clean]
        rng = random.Random(7)  # noqa: S311  # planting faults needs no secrecy, only repeatability
        swaps: list[tuple[Interaction, str]] = []
        planted: list[tuple[Interaction, str]] = []
        for place, interaction in enumerate(supported):
            donor = donor_of(supported, groups, place)
            if donor is None:
                continue
            swaps.append((replace(interaction, contexts=donor.contexts), groups[place]))
            for kind in _PLANTED:
                faulty = PLANTERS[kind](interaction, donor, rng)
                if faulty is not None:
                    planted.append((faulty, groups[place]))
        prepared.swaps = _negatives(engine, swaps)
        prepared.planted = _negatives(engine, planted)
    return prepared


def _negatives(engine: Engine, rows: Sequence[tuple[Interaction, str]]) -> Rows | None:
    values = _features(engine, "support", [interaction for interaction, _ in rows])
    kept = [(row, group) for row, (_, group) in zip(values, rows, strict=True) if row is not None]
    if not kept:
        return None
    return _rows([row for row, _ in kept], [0.0] * len(kept), [group for _, group in kept])


def _fit(parts: Sequence[Rows], names: Sequence[str]) -> Model:
    return fit(joined(parts), names, unsigned=UNSIGNED)


def _crossed(rows: Rows, folds: Sequence[Model], fitted: bool) -> Floats:
    if not fitted:
        mean: Floats = np.mean([predict(model, rows.features) for model in folds], axis=0)
        return mean
    found = np.zeros(len(rows.labels))
    for number, model in enumerate(folds):
        inside = rows.folds == number
        if inside.any():
            found[inside] = predict(model, rows.features[inside])
    return found


def _loss(labels: Floats, scores: Floats) -> Floats:
    inside = np.clip(scores, 1e-9, 1 - 1e-9)
    return np.asarray(-(labels * np.log(inside) + (1 - labels) * np.log(1 - inside)))


def _against(one: _Prepared, scores: Floats, current: Model) -> tuple[float, float, float]:
    """The table in force on the same rows: its measure, the change of loss and its standard error."""
    labels, weights = one.own.labels, one.own.weights / one.own.weights.sum()
    held = predict(current, one.own.features)
    change = _loss(labels, scores) - _loss(labels, held)
    mean = float(weights @ change)
    measure = spearman if one.about.graded else auroc
    return measure(labels, held), mean, float(np.sqrt((weights**2 * (change - mean) ** 2).sum()))


def _report(
    tier: Tier,
    model: str,
    one: _Prepared,
    folds: Sequence[Model],
    alone: Model | None,
    *,
    current: Model | None = None,
) -> SetReport:
    fitted = one.about.fit
    labels, scores = one.own.labels, _crossed(one.own, folds, fitted)
    measure = spearman if one.about.graded else auroc
    low, high = (float("nan"), float("nan")) if one.about.graded else auroc_interval(labels, scores)
    good = scores[labels == 1.0]
    against: list[float | None] = []
    for made in (one.swaps, one.planted):
        other = None if made is None else _crossed(made, folds, fitted)
        against.append(
            None if other is None else auroc(np.r_[np.ones(len(good)), np.zeros(len(other))], np.r_[good, other])
        )
    in_force, loss_change, loss_change_se = (
        (None, None, None) if current is None else _against(one, scores, current)
    )
    return SetReport(
        one.about.name,
        str(tier),
        model,
        one.about.licence,
        fitted,
        len(labels),
        one.unscored,
        "spearman" if one.about.graded else "auroc",
        measure(labels, scores),
        low,
        high,
        float("nan") if alone is None else measure(labels, predict(alone, one.own.features)),
        balanced_accuracy(labels, scores),
        calibration_error(labels, scores),
        swapped=against[0],
        planted=against[1],
        in_force=in_force,
        loss_change=loss_change,
        loss_change_se=loss_change_se,
    )


def refit(
    engine: Engine, sets: Sequence[LabelledSet], *, current: Table | None = None
) -> tuple[dict[str, Model], list[SetReport]]:
    """Models for the engine's tier (by name, `support.fast` ...) for the tasks that `sets` hold, and the report, with
    how the table in force does on the same rows where one is given."""
    models: dict[str, Model] = {}
    reports: list[SetReport] = []
    names = feature_names(engine.tier)
    for task, model in MODEL_OF_TASK.items():
        own = [one for one in sets if one.task == task]
        if task == "groundedness":
            own += [answers for one in sets if (answers := one.supported_answers()) is not None]
        chosen = [ready for one in own if len((ready := _prepare(engine, model, one)).own.labels)]
        fitting = [one for one in chosen if one.about.fit and one.about.weight > 0]
        if not fitting:
            continue
        models[f"{model}.{engine.tier}"] = _fit([part for one in fitting for part in one.fitting()], names[model])
        folds = [
            _fit(
                [part.where(part.folds != number) for one in fitting for part in one.fitting()],
                names[model],
            )
            for number in range(FOLDS)
        ]
        for one in chosen:
            others = [part for other in fitting if other is not one for part in other.fitting()]
            alone = _fit(others, names[model]) if others else None
            held = None if current is None else current.model(f"{model}.{engine.tier}", names[model])
            reports.append(_report(engine.tier, model, one, folds, alone, current=held))
    return models, reports


def table_json(
    models: Mapping[str, Model], sets: Sequence[LabelledSet], *, earlier: Sequence[Mapping[str, object]] = ()
) -> str:
    """The table file: models, and what they were fitted on: `earlier` lists what those of another table were. The
    version is a digest of the models."""
    listed = {
        name: {
            "features": list(model.features),
            "coefficients": list(model.coefficients),
            "intercept": model.intercept,
        }
        for name, model in sorted(models.items())
    }
    digest = hashlib.sha256(json.dumps(listed, sort_keys=True).encode()).hexdigest()[:8]
    fitted_on = [
        *earlier,
        *(
            {"set": s.name, "origin": s.origin, "licence": s.licence, "rows": len(s.rows), "weight": s.weight}
            for s in sets
            if s.fit and s.weight > 0
        ),
    ]
    table = {"format": FORMAT, "version": digest, "fitted_on": fitted_on, "models": listed}
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def report_json(reports: Sequence[SetReport]) -> list[dict[str, object]]:
    """The report as plain data."""
    return [asdict(report) for report in reports]


def report_text(reports: Sequence[SetReport]) -> str:
    """The report as a table for people."""
    head = (
        f"{'tier':5} {'model':9} {'set':22} {'rows':>5} {'measure':9} {'documents':>9} {'95 %':>11} {'set':>6} "
        f"{'BA':>5} {'cal.err':>7} {'swapped':>7} {'planted':>7}"
    )
    lines = [head]
    for one in reports:
        name = one.name if one.fitted else f"{one.name} (unseen)"
        made = ["" if value is None else f"{value:.3f}" for value in (one.swapped, one.planted)]
        lines.append(
            f"{one.tier:5} {one.model:9} {name:22} {one.rows:5} {one.measure:9} {one.held_out_documents:9.3f} "
            f"{one.low:5.2f}-{one.high:.2f} {one.held_out_set:6.3f} {one.balanced_accuracy:5.2f} "
            f"{one.calibration_error:7.3f} {made[0]:>7} {made[1]:>7}"
        )
        if one.loss_change is not None and one.loss_change_se is not None:
            lines.append(
                f"{'':15} the table in force: {one.in_force:.3f}; logarithmic loss {one.loss_change:+.4f} "
                f"(standard error {one.loss_change_se:.4f}), {'better' if one.better else 'no better'}"
            )
    return "\n".join(lines)

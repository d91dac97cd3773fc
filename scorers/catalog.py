"""Names of scorers and how to make them. Nothing is imported before it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import metadata

from pydantic import TypeAdapter, ValidationError

from scorers.config import (
    CustomOptions,
    FactualCorrectnessOptions,
    PlainOptions,
    ResponseRelevancyOptions,
    ScorerOptions,
)
from scorers.errors import BadScorerOptions, UnknownScorer
from scorers.judged.rubric import RubricOptions
from scorers.scorer import JudgedScorer

ENTRY_POINT_GROUP = "groundwatch.scorers"
DEFAULT_JUDGED = ("faithfulness", "response_relevancy", "context_relevance", "groundedness", "noncommittal")
"""Judged on live traffic where nothing else is configured."""
REFERENCE_JUDGED = (
    "context_precision_reference",
    "context_recall",
    "factual_correctness",
    "noise_sensitivity",
)
"""Judged scorers that need a reference."""
PRESETS = (
    "support",
    "usefulness",
    "retrieval_need",
    "retrieval_grade",
    "hallucination_grade",
    "answer_grade",
)
_ALIASES: Mapping[str, str] = {
    "noise_sensitivity_relevant": "noise_sensitivity",
    "noise_sensitivity_irrelevant": "noise_sensitivity",
    "precision_at_k": "passage_relevance",
    "context_precision": "passage_relevance",
}
"""Metrics that a scorer of another name gives."""


def _plain() -> dict[str, Callable[[], JudgedScorer]]:
    from scorers.judged import faithfulness, noncommittal, passages, ratings, reference

    return {
        "faithfulness": faithfulness.Faithfulness,
        "context_relevance": ratings.ContextRelevance,
        "groundedness": ratings.Groundedness,
        "noncommittal": noncommittal.Noncommittal,
        "passage_relevance": passages.PassageRelevance,
        "context_precision_reference": passages.ContextPrecisionReference,
        "context_recall": reference.ContextRecall,
        "noise_sensitivity": reference.NoiseSensitivity,
    }


def judged_names() -> tuple[str, ...]:
    """Every judged scorer that can be named without options, users' own included."""
    own = tuple(point.name for point in metadata.entry_points(group=ENTRY_POINT_GROUP))
    return (*DEFAULT_JUDGED, "passage_relevance", *REFERENCE_JUDGED, *PRESETS, *own)


def make_judged(options: ScorerOptions) -> JudgedScorer:
    """One judged scorer. Raises `UnknownScorer` or `BadScorerOptions`."""
    if isinstance(options, PlainOptions):
        if options.type in PRESETS:
            from scorers.judged.rubric import Rubric, presets

            return Rubric(presets()[options.type])
        return _plain()[options.type]()
    if isinstance(options, ResponseRelevancyOptions):
        from scorers.judged.response_relevancy import ResponseRelevancy

        return ResponseRelevancy(strictness=options.strictness, noncommittal=options.noncommittal)
    if isinstance(options, FactualCorrectnessOptions):
        from scorers.judged.reference import FactualCorrectness

        return FactualCorrectness(
            mode=options.mode, beta=options.beta, atomicity=options.atomicity, coverage=options.coverage
        )
    if isinstance(options, RubricOptions):
        from scorers.judged.rubric import Rubric

        return Rubric(options)
    return _custom(options)


def _custom(options: CustomOptions) -> JudgedScorer:
    points = metadata.entry_points(group=ENTRY_POINT_GROUP, name=options.name)
    if not points:
        raise UnknownScorer(
            f"no installed package offers a scorer called {options.name!r} (entry points {ENTRY_POINT_GROUP!r})"
        )
    try:
        factory = next(iter(points)).load()
    except (ImportError, AttributeError) as error:
        raise BadScorerOptions(
            f"scorer {options.name!r} can not be loaded: {error}; reinstall its package"
        ) from error
    try:
        scorer = factory(**options.options)
    except (TypeError, ValueError) as error:
        raise BadScorerOptions(f"scorer {options.name!r} does not take these options: {error}") from error
    if not isinstance(scorer, JudgedScorer):
        raise BadScorerOptions(
            f"scorer {options.name!r} is no judged scorer: it lacks info, prompts, questions or results"
        )
    return scorer


def judged(names: Sequence[str | ScorerOptions]) -> list[JudgedScorer]:
    """Judged scorers by name (with their defaults) or by options, each once, in order.

    A metric's name stands for the scorer that gives it; a name alone for one that is listed before it with options.
    Raises `UnknownScorer`, which lists the names, and `BadScorerOptions` where two scorers would give one metric.
    """
    made: dict[str, JudgedScorer] = {}
    chosen: dict[str, ScorerOptions] = {}
    for name in names:
        options = options_of(name) if isinstance(name, str) else name
        scorer = make_judged(options)
        own = scorer.info.name
        if own in made and (isinstance(name, str) or chosen[own] == options):
            continue
        for other in made.values():
            if taken := set(other.info.gives) & set(scorer.info.gives):
                raise BadScorerOptions(
                    f"two judged scorers give the metric {min(taken)!r}: call one otherwise (a rubric by its name), or "
                    "leave it out"
                )
        made[own], chosen[own] = scorer, options
    return list(made.values())


def options_of(name: str) -> ScorerOptions:
    """The options that a bare name stands for. Raises `UnknownScorer`."""
    wanted = _ALIASES.get(name, name)
    adapter: TypeAdapter[ScorerOptions] = TypeAdapter(ScorerOptions)
    try:
        if wanted == "rubric":
            raise UnknownScorer("a rubric needs its text: configure it under judge.scorers with type: rubric")
        return adapter.validate_python({"type": wanted})
    except ValidationError:
        if any(point.name == wanted for point in metadata.entry_points(group=ENTRY_POINT_GROUP)):
            return CustomOptions(name=wanted)
        raise UnknownScorer(
            f"no judged scorer is called {name!r}; there are: {', '.join(judged_names())}"
        ) from None


def runnable(scorers: Sequence[JudgedScorer], *, embeddings: bool) -> tuple[list[JudgedScorer], list[str]]:
    """The scorers that can run, and the names of those that need an embeddings endpoint where there is none."""
    left_out = [s.info.name for s in scorers if s.info.name == "response_relevancy" and not embeddings]
    return [scorer for scorer in scorers if scorer.info.name not in left_out], left_out

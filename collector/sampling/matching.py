"""Which interactions a rule means, by one attribute of their resource or spans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from collector.records.found import Found
from collector.sampling.patterns import check_regex, matcher


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _one_or_more(value: Any) -> Any:
    return (value,) if isinstance(value, str | bool | int | float) else value


Values = Annotated[tuple[str | bool | int | float, ...], BeforeValidator(_one_or_more)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_one_or_more)]


class Match(Strict):
    """Matches interactions by one attribute of the resource or of the interaction's spans.

    Without `equals`, `glob` and `regex` it matches where the attribute is there at all. Values are compared as text,
    cut to 256 characters; of a list, any element may match.
    """

    attribute: str = Field(min_length=1, description="Name of the attribute.")
    equals: Values = Field(default=(), description="Matches when the value is one of these.")
    glob: Texts = Field(default=(), description="Matches when the value fits one of these (*, ?, [abc]).")
    regex: Texts = Field(
        default=(),
        description="Matches when one of these fits the whole value. No back-references or look-around, no repeated "
        "group that holds a repeat or alternatives, at most two unbounded or wide repeats.",
    )
    ignore_case: bool = Field(default=False, description="Compare without regard to case.")

    @model_validator(mode="after")
    def _safe(self) -> Self:
        for pattern in self.regex:
            check_regex(pattern)
        return self


def compiled(match: Match) -> Callable[[Found], bool]:
    """The match as a test of one interaction; the resource's attribute or the spans', either may fit."""
    name = match.attribute
    fits = matcher(equals=match.equals, globs=match.glob, regexes=match.regex, ignore_case=match.ignore_case)

    def matches(found: Found) -> bool:
        for place in (found.resource, found.attributes):
            value = place.get(name)
            if value is not None and fits(value):
                return True
        return False

    return matches


def any_of(matches: Sequence[Match]) -> Callable[[Found], bool]:
    """Whether any of the matches fits; False without one."""
    tests = [compiled(match) for match in matches]
    names = frozenset(match.attribute for match in matches)

    def fits(found: Found) -> bool:
        # Most interactions bear none of the attributes, which this tells at once.
        if names.isdisjoint(found.resource) and names.isdisjoint(found.attributes):
            return False
        return any(test(found) for test in tests)

    return fits

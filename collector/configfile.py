"""From a YAML file and the environment to one validated model, with errors that say where, what and how to mend.

Knows nothing of what is configured: `load` takes the root model. All problems are reported at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

PREFIX = "GROUNDWATCH_"
M = TypeVar("M", bound=BaseModel)
Location = tuple[str | int, ...]


class ConfigError(Exception):
    """The configuration can not be used. `problems` holds one sentence each: place, value, cure."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class _Source:
    """The merged values, and where each came from (file and line, or the variable's name)."""

    values: dict[str, Any]
    places: dict[Location, str]

    def place(self, location: Location) -> str:
        """The most precise known place of `location`: its own, else that of the nearest part around it."""
        for length in range(len(location), 0, -1):
            found = self.places.get(location[:length])
            if found:
                return found
        return ""


def load(model: type[M], path: Path | None, environment: Mapping[str, str]) -> M:
    """Read `path` (optional), lay `GROUNDWATCH_*` variables over it, and validate whole.

    Raises ConfigError with every problem. A variable `GROUNDWATCH_SECTION_FIELD` sets `section.field`; deeper
    fields are separated by two underscores (`GROUNDWATCH_RECEIVERS_HTTP__PORT`). Values are read as YAML.
    """
    problems: list[str] = []
    source = _Source({}, {})
    if path is not None:
        _read_file(path, environment, source, problems)
    _read_environment(model, environment, source, problems)
    if problems:
        raise ConfigError(problems)
    try:
        return model.model_validate(source.values)
    except ValidationError as error:
        raise ConfigError([_explain(model, source, dict(item)) for item in error.errors()]) from None


def _read_file(path: Path, environment: Mapping[str, str], source: _Source, problems: list[str]) -> None:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(
            f"{path}: can not be read ({_why(error)}): check the path given with -c or GROUNDWATCH_CONFIG"
        )
        return
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        values = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a day that no month has
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problems.append(f"{path}{line}: is not valid YAML: {getattr(error, 'problem', None) or error}")
        return
    if values is None:
        return
    if not isinstance(values, dict):
        problems.append(
            f"{path}:1: must be a mapping of sections, is {values!r:.60}: see `groundwatch config --example`"
        )
        return
    try:
        problems.extend(f"{path}:{place}" for place in _twice(node, ()))
        source.values.update(_resolve(values, path, environment, problems))
        for location, line_number in _lines(node, ()):
            source.places[location] = f"{path}:{line_number}"
    except RecursionError:
        problems.append(f"{path}: a part of it holds itself by an alias (*name): write out what is meant")


def _why(error: OSError | UnicodeDecodeError) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "no text in UTF-8"


def _twice(node: Any, at: Location) -> Iterator[str]:
    """Settings that stand twice in one mapping: YAML's loader would take the last one, and say nothing."""
    if isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _twice(value, (*at, index))
    if not isinstance(node, yaml.MappingNode):
        return
    first: dict[str, int] = {}
    for key, value in node.value:
        line, name = key.start_mark.line + 1, str(key.value)
        location = (*at, name)
        if name in first and key.tag != "tag:yaml.org,2002:merge":
            dotted = ".".join(str(part) for part in location)
            yield f"{line}: {dotted}: is set in line {first[name]} already; put both into one"
        first.setdefault(name, line)
        yield from _twice(value, location)


def _resolve(value: Any, path: Path, environment: Mapping[str, str], problems: list[str]) -> Any:
    """Replace `{from_file: PATH}` and `{from_env: NAME}` by what they name, so that no secret stands in the file."""
    if isinstance(value, list):
        return [_resolve(item, path, environment, problems) for item in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"from_env"}:
        name = str(value["from_env"])
        if name not in environment:
            problems.append(f"{path}: from_env: {name}: this environment variable is not set")
        return environment.get(name, "")
    if set(value) == {"from_file"}:
        try:
            return (path.parent / str(value["from_file"])).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path}: from_file: {value['from_file']}: can not be read ({_why(error)})")
            return ""
    return {key: _resolve(item, path, environment, problems) for key, item in value.items()}


def _lines(node: Any, at: Location) -> Iterator[tuple[Location, int]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            location = (*at, str(key.value))
            yield location, key.start_mark.line + 1
            yield from _lines(value, location)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield (*at, index), value.start_mark.line + 1
            yield from _lines(value, (*at, index))


NOT_SETTINGS = ("CONFIG", "TEST_")
"""Variables with our prefix that are not settings: the config file's path, and what our own tests use."""


_SERVICE_LINK = re.compile(r"(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
"""What Kubernetes sets in every pod of a namespace that has a Service called groundwatch; no settings of ours."""


def _read_environment(
    model: type[BaseModel], environment: Mapping[str, str], source: _Source, problems: list[str]
) -> None:
    for name in sorted(environment):
        if not name.startswith(PREFIX) or name.removeprefix(PREFIX).startswith(NOT_SETTINGS):
            continue
        location = _location(model, name.removeprefix(PREFIX).lower())
        if location is None:
            if _SERVICE_LINK.fullmatch(name.removeprefix(PREFIX)):
                continue
            problems.append(
                f"{name}: no such setting; variables are {PREFIX}<SECTION>_<FIELD>, with sections "
                f"{', '.join(sorted(model.model_fields))}"
            )
            continue
        try:
            value = yaml.safe_load(environment[name])
        except (yaml.YAMLError, ValueError, RecursionError):
            value = environment[name]
        here = source.values
        for key in location[:-1]:
            below = here.get(key)
            if not isinstance(below, dict):
                below = {}
                here[key] = below
            here = below
        here[location[-1]] = value
        source.places[tuple(location)] = name


def _location(model: type[BaseModel], name: str) -> list[str] | None:
    """`judge_base_url` -> [judge, base_url]; None where no section fits."""
    if name in model.model_fields:
        return [name]
    for section in sorted(model.model_fields, key=len, reverse=True):
        if name.startswith(section + "_"):
            return [section, *name.removeprefix(section + "_").split("__")]
    return None


def _explain(model: type[BaseModel], source: _Source, item: dict[str, Any]) -> str:
    location: Location = tuple(item["loc"])
    dotted = ".".join(str(part) for part in location) or "the configuration"
    place = source.place(location)
    where = f"{place}: {dotted}" if place else dotted
    kind = item["type"]
    if kind == "extra_forbidden":
        known = sorted(_fields_at(model, location[:-1]))
        near = difflib.get_close_matches(str(location[-1]), known, n=1, cutoff=0.6)
        cure = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
        return f"{where}: there is no such setting; {cure}"
    if kind == "missing":
        return f"{where}: is required; add it (see `groundwatch config --example`)"
    message = str(item["msg"]).removeprefix("Value error, ")
    if kind == "model_type":
        message = f"must be a mapping of {', '.join(sorted(_fields_at(model, location)))}"
    value = item.get("input")
    shown = f" (is {value!r:.80})" if not isinstance(value, dict | BaseModel) else ""
    if shown and any(_SECRET.fullmatch(str(part)) for part in location):
        shown = " (its value is not shown: it may be a secret)"
    return f"{where}: {message[0].lower()}{message[1:]}{_LOGIN.sub('//...@', shown)}"


_SECRET = re.compile(r"(?:.*_)?(?:password|secret)s?|api_key|tokens?|headers")
"""Settings that hold secrets, or are easily given one in the place of where it is read from."""
_LOGIN = re.compile(r"//[^/\s@]*@")


def _fields_at(model: type[BaseModel], location: Location) -> set[str]:
    here: type[BaseModel] | None = model
    for part in location:
        if here is None:
            return set()
        field = here.model_fields.get(str(part))
        here = model_of(field) if field else here
    return set(here.model_fields) if here else set()


def model_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model that a field holds, alone or as `Model | None`; None for any other field."""
    candidates = [field.annotation, *get_args(field.annotation)]
    for candidate in candidates:
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None


def example(model: type[BaseModel]) -> str:
    """A commented YAML file with every setting at its default; settings without one are commented out."""
    return "\n".join(_example(model, 0, None)) + "\n"


def _example(model: type[BaseModel], depth: int, values: BaseModel | None) -> Iterator[str]:
    pad = "  " * depth
    for name, field in model.model_fields.items():
        if field.description:
            yield f"{pad}# {field.description}"
        below = model_of(field)
        default = getattr(values, name) if values is not None else field.get_default(call_default_factory=True)
        if below is not None and (default is None or isinstance(default, BaseModel)):
            if default is None:
                yield f"{pad}# {name}:"
                for line in _example(below, 0, None):
                    yield f"{pad}#   {line}"
            else:
                yield f"{pad}{name}:"
                yield from _example(below, depth + 1, default)
        elif default is None or field.is_required():
            yield f"{pad}# {name}:"
        else:
            dumped = yaml.safe_dump(
                {name: _plain(default)}, allow_unicode=True, sort_keys=False, width=1000
            ).rstrip()
            yield from (pad + line for line in dumped.splitlines())
        if depth == 0:
            yield ""


def _plain(value: Any) -> Any:
    """What YAML can hold, from what a model holds."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    if isinstance(value, bool | int | float) or value is None:
        return value
    return str(value)

"""The OpenAPI document of the review API, made of the models that check and write what goes over the wire."""

from __future__ import annotations

import json
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from collector.web.review.filters import Asked
from collector.web.review.models import (
    CaseAnswer,
    EraseBody,
    ErasedAnswer,
    FacetsAnswer,
    FeedbackAnswer,
    FeedbackBody,
    LabelBody,
    PageAnswer,
    Problem,
    SessionAnswer,
    StatsAnswer,
    UndoBody,
)
from collector.web.session import TOKEN_HEADER

_REF = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class Operation:
    """One method of one path. `sent` and `asked` are the models that read its body and its parameters."""

    method: str
    path: str
    name: str
    summary: str
    answer: type[BaseModel]
    sent: type[BaseModel] | None = None
    asked: type[BaseModel] | None = None
    problems: tuple[int, ...] = ()


class CaseAsked(BaseModel):
    """Which case."""

    id: str


_CHANGE = (403, 413, 415, 422, 503)
OPERATIONS = (
    Operation("get", "/api/v1/review/cases", "list_cases", "List and search cases", PageAnswer, asked=Asked,
              problems=(422, 503)),
    Operation("get", "/api/v1/review/case", "get_case", "One case", CaseAnswer, asked=CaseAsked,
              problems=(404, 422, 503)),
    Operation("get", "/api/v1/review/facets", "facets", "The values that filters can take", FacetsAnswer,
              problems=(503,)),
    Operation("get", "/api/v1/review/stats", "stats", "The store now", StatsAnswer, problems=(503,)),
    Operation("get", "/api/v1/review/session", "session", "Who asks, and a token for changes", SessionAnswer),
    Operation("post", "/api/v1/review/labels", "label", "Label a case, all labels or none", CaseAnswer,
              sent=LabelBody, problems=(404, 409, *_CHANGE)),
    Operation("post", "/api/v1/review/undo", "undo", "Take back the author's last labels on a case", CaseAnswer,
              sent=UndoBody, problems=(404, 409, *_CHANGE)),
    Operation("post", "/api/v1/review/erase", "erase", "Erase a data subject's cases, verified", ErasedAnswer,
              sent=EraseBody, problems=_CHANGE),
)  # fmt: skip
FEEDBACK = Operation(
    "post", "/api/v1/feedback", "feedback", "What a user said about an answer", FeedbackAnswer, sent=FeedbackBody,
    problems=(404, 413, 415, 422, 503),
)  # fmt: skip


def document(version: str, *, feedback: bool) -> bytes:
    """OpenAPI 3.1, as JSON; with the operation that takes feedback where there is one."""
    operations = (*OPERATIONS, *((FEEDBACK,) if feedback else ()))
    sent = {one.sent for one in operations if one.sent}
    answers = {one.answer for one in operations} | {Problem}
    asked = {one.asked for one in operations if one.asked}
    ways = [(model, "validation") for model in sent | asked] + [(model, "serialization") for model in answers]
    ways.sort(key=lambda way: way[0].__name__)
    refs, definitions = models_json_schema(ways, ref_template=_REF)
    schemas = definitions.get("$defs", {})
    by_model = {str(getattr(model, "__name__", "")): ref for (model, _), ref in refs.items()}
    paths: dict[str, dict[str, object]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method] = _operation(one, by_model, schemas)
    shown = {name: schema for name, schema in schemas.items() if name not in {model.__name__ for model in asked}}
    return json.dumps(
        {
            "openapi": "3.1.0",
            "info": {"title": "groundwatch review", "version": version, "license": {"name": "Apache-2.0"}},
            "paths": paths,
            "security": [{"bearer": []}, {"basic": []}, {}],
            "components": {
                "schemas": shown,
                "securitySchemes": {
                    "bearer": {"type": "http", "scheme": "bearer"},
                    "basic": {"type": "http", "scheme": "basic"},
                },
            },
        },
        ensure_ascii=False,
    ).encode()


def _operation(
    one: Operation, refs: dict[str, dict[str, object]], schemas: dict[str, dict[str, object]]
) -> dict[str, object]:
    parameters: list[dict[str, object]] = []
    if one.asked is not None:
        parameters += _parameters(schemas[one.asked.__name__])
    if one.sent is not None:
        parameters.append(
            {
                "name": TOKEN_HEADER,
                "in": "header",
                "required": False,
                "description": "csrf_token of /api/v1/review/session, where no bearer token is sent",
                "schema": {"type": "string", "maxLength": 200},
            }
        )
    problem = {"application/problem+json": {"schema": refs[Problem.__name__]}}
    statuses = sorted({*one.problems, 401, 403, 429})
    found: dict[str, object] = {
        "operationId": one.name,
        "summary": one.summary,
        "parameters": parameters,
        "responses": {
            "200": {"description": "done", "content": {"application/json": {"schema": refs[one.answer.__name__]}}},
            **{str(status): {"description": _SAYS[status], "content": problem} for status in statuses},
        },
    }
    if one.sent is not None:
        content = {"application/json": {"schema": refs[one.sent.__name__]}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _parameters(schema: dict[str, object]) -> list[dict[str, object]]:
    properties, required = schema["properties"], schema.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    found = []
    for name, one in properties.items():
        own = {key: value for key, value in one.items() if key not in ("title", "description")}
        given = {"name": name, "in": "query", "required": name in required, "schema": own}
        found.append({**given, "description": one["description"]} if "description" in one else given)
    return found


_SAYS = {
    401: "who asks is not known",
    403: "not allowed: read only, or a token is missing",
    404: "there is no such case",
    409: "somebody was there first, or there is nothing to undo",
    413: "too much at once",
    415: "the body is no JSON",
    422: "what was sent can not be meant",
    429: "too many passwords wait to be checked",
    503: "the store does not answer",
}

"""docs/reference/routes.md: every route with a request and its answer, and the models they use."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from handlers.web.openapi_build import ALWAYS, document
from handlers.web.routes import ROUTES
from handlers.web.titles import TITLES

from .docstrings import markdown, table
from .examples import examples
from .kinds import kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from handlers.web.routes import Route

    from .recording import Exchange

ABOUT: Final = """\
# Routes

A request and its answer for each route of the API. The examples are recorded from the API's
function; a deployment's address comes before each path, and `Authorization: Bearer …` goes with
each request. `GET /v1/openapi.json` serves the same as an OpenAPI document. [The rules of the
API](../api.md) gives the reasons, and [errors](errors.md) lists the codes. Every route can answer
{always}.
"""
MODELS: Final = """\
## Models

A field without a value is left out of an answer.
"""
BUCKET: Final = "https://your-bucket.s3.eu-west-1.amazonaws.com/"
ON_AWS: Final[Mapping[str, Mapping[str, Any]]] = {
    "create_report": {"url": f"{BUCKET}reports/…?X-Amz-Signature=…"},
    "create_upload": {
        "url": BUCKET,
        "fields": {"key": "uploads/…", "policy": "…", "x-amz-signature": "…"},
    },
    "openapi": {"paths": "…", "components": "…"},
}
"""What the memory's bucket answers otherwise, or what is too long to show."""


def page() -> str:
    always = ", ".join(str(status.value) for status in sorted(ALWAYS))
    made = document()
    sections = [ABOUT.format(always=always)]
    sections += [_route(route, made) for route in ROUTES]
    return "\n".join([*sections, MODELS, *_models(made)])


# --- routes -----------------------------------------------------------------------------------


def _route(route: Route, made: Mapping[str, Any]) -> str:
    operation = made["paths"][route.path][route.method]
    parts = [f"## {route.method.upper()} {route.path}\n", f"{route.summary}. {_needs(route)}\n"]
    if operation["parameters"]:
        parts.append(table(("parameter", "in", "value", "meaning"), _parameters(operation, made)))
    if "requestBody" in operation:
        text = operation["requestBody"].get("description", "")
        model = operation["requestBody"]["content"]["application/json"]["schema"]
        parts.append(f"Body: {kind(model, made)}. {text}".rstrip() + "\n")
    parts.append(table(("status", "answer"), _answers(route, operation, made)))
    return "\n".join([*parts, _example(route.name, examples()[route.name])])


def _needs(route: Route) -> str:
    return f"Scope: `{route.scope.value}`."


def _parameters(operation: Mapping[str, Any], made: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for each in operation["parameters"]:
        value = kind(each["schema"], made)
        if "default" in each["schema"]:
            value += f"; `{json.dumps(each['schema']['default']).strip(chr(34))}` when left out"
        name = f"`{each['name']}`" + (", required" if each["required"] else "")
        yield name, each["in"], value, markdown(each["description"])


def _answers(
    route: Route, operation: Mapping[str, Any], made: Mapping[str, Any]
) -> Iterator[Sequence[str]]:
    always = {str(status.value) for status in ALWAYS} - {str(each.value) for each in route.problems}
    for status, answer in operation["responses"].items():
        if status in always:
            continue
        [content] = list(answer.get("content", {"": None}).values())[:1]
        model = "" if content is None else kind(content["schema"], made)
        yield f"{status} {answer['description']}", model


def _example(name: str, made: Exchange) -> str:
    query = f"?{made.query}" if made.query else ""
    request = [f"{made.method} {made.path}{query}"]
    request += [f"{header}: {value}" for header, value in made.headers.items()]
    if made.body is not None:
        request += ["Content-Type: application/json", "", _json(made.body)]
    shown = _shown(name, made)
    answer = [f"HTTP/1.1 {made.status} {_title(made.status)}"]
    answer += [f"{header}: {value}" for header, value in shown.answered.items()]
    answer += ["", _json(shown.answer)]
    return "```http\n" + "\n".join(request) + "\n```\n\n```http\n" + "\n".join(answer) + "\n```\n"


def _title(status: int) -> str:
    return {each.value: title for each, title in TITLES.items()}[status]


def _shown(name: str, made: Exchange) -> Exchange:
    answer: dict[str, Any] = {**made.answer, **ON_AWS.get(name, {})}
    if name == "list_operations":
        [first] = [each for each in answer["operations"] if each["name"] == "delete_records"]
        answer["operations"] = [first]
    answered = dict(made.answered)
    if name == "create_report":
        answered["Location"] = answer["url"]
    return replace(made, answer=answer, answered=answered)


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


# --- models -----------------------------------------------------------------------------------


def _models(made: Mapping[str, Any]) -> Iterator[str]:
    for name, model in made["components"]["schemas"].items():
        if "properties" not in model:
            continue
        needed = model.get("required", ())
        rows = [
            (
                f"`{each}`" + (", required" if each in needed else ""),
                kind(schema, made),
                markdown(schema.get("description", "")),
            )
            for each, schema in model["properties"].items()
        ]
        about = markdown(model.get("description", ""))
        yield f"### {name}\n\n{about}\n\n".replace("\n\n\n", "\n") + table(
            ("field", "value", "meaning"), rows
        )

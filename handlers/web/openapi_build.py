"""The OpenAPI 3.1 document, generated: the models say what goes in and out, ``routes`` says where.

``make openapi`` writes it beside this module; ``document`` serves from it what a deployment has.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from pydantic.json_schema import models_json_schema

from ..jobs.selection.request import SELECTIONS, JobRequest
from ..jobs.words.limits import MAX_BODY_BYTES, Limits
from . import schemas
from .openapi_document import IAM, TOKEN, json_text
from .preview_job import UploadRequest
from .routes import JOB_ID, ROUTES, TEXT
from .titles import TITLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import BaseModel
    from pydantic.json_schema import JsonSchemaMode

    from .routes import Route

VERSION: Final = "1"
REF: Final = "#/components/schemas/{model}"
Schema = dict[str, Any]

ALWAYS: Final = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
"""Problems every route can answer with."""
LATER: Final = frozenset(
    {HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}
)
"""Statuses after which the same request can succeed later."""
HEADERS: Final[Mapping[str, Schema]] = {
    "X-Request-Id": {"schema": TEXT, "description": "By which operators find the request."},
    "Location": {"schema": TEXT, "description": "The address of what the answer is about."},
    "ETag": {"schema": TEXT, "description": "Changes when the job changes."},
    "Retry-After": {
        "schema": {"type": "integer", "minimum": 0},
        "description": "Seconds until it is worth asking again.",
    },
    "Idempotency-Replayed": {
        "schema": {"type": "string", "enum": ["true"]},
        "description": "The answer was given to an earlier request with this key.",
    },
}
SERVER: Final[Schema] = {
    "url": "https://{api_id}.execute-api.{region}.amazonaws.com/live",
    "description": "A deployment. The document that it serves names its own address.",
    "variables": {"api_id": {"default": "example"}, "region": {"default": "eu-west-1"}},
}
TAGS: Final = {
    "jobs": "Create, find and control jobs, and see what became of their records.",
    "uploads": "Files of ids, for jobs over more records than a request can name.",
    "deployment": "What a deployment offers: operations, lanes, this document.",
}
EXAMPLES: Final[Mapping[type[BaseModel], Schema]] = {
    JobRequest: {
        "ids": {
            "summary": "A few records, by their ids",
            "value": {
                "operation": "adjust_number",
                "subject": "products",
                "params": {"field": "price", "add": 1},
                "ids": ["007", "7"],
            },
        },
        "query": {
            "summary": "All records that match a filter",
            "value": {
                "operation": "adjust_number",
                "subject": "products",
                "params": {"field": "price", "add": 1},
                "query": {"all": [{"field": "brand", "op": "eq", "value": "acme"}]},
            },
        },
    },
    UploadRequest: {
        "csv": {"summary": "A CSV file", "value": {"format": "csv", "column": "sku"}},
    },
}
FIREWALL: Final = frozenset(
    {HTTPStatus.FORBIDDEN, HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.TOO_MANY_REQUESTS}
)
"""Statuses of the web firewall's refusals, which never reach the API."""
SCHEMES: Final = {
    TOKEN: {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
    # As API Gateway writes it: OpenAPI has no kind of its own for signed requests.
    IAM: {
        "type": "apiKey",
        "name": "Authorization",
        "in": "header",
        "x-amazon-apigateway-authtype": "awsSigv4",
        "description": "The client signs with AWS Signature Version 4, service execute-api.",
    },
}
"""A deployment has one of them."""


def document() -> Schema:
    """The whole document."""
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fairlane",
            "version": VERSION,
            "description": "Bulk jobs in two lanes: bulk jobs never make small jobs wait. Every "
            "answer of the API has an X-Request-Id. Errors are problems (RFC 9457) with a stable "
            "code. A deployment takes either tokens or requests signed with IAM; the document "
            "that a deployment serves names the one it takes, and the deployment's own limits.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [SERVER],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "securitySchemes": SCHEMES,
        },
    }


def text() -> str:
    """As it is committed."""
    return json_text(document())


# --- parts ------------------------------------------------------------------------------------


def _operation(route: Route) -> Schema:
    parameters = (*((JOB_ID,) if route.of_a_job else ()), *route.parameters)
    missing = (HTTPStatus.NOT_FOUND,) if route.of_a_job else ()
    of_body = () if route.body is None else (HTTPStatus.UNSUPPORTED_MEDIA_TYPE,)
    problems = sorted({*ALWAYS, *route.problems, *missing, *of_body})
    operation: Schema = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "security": [{TOKEN: [route.scope.value]}, {IAM: []}],
        "parameters": [parameter.as_json() for parameter in parameters],
        "responses": {
            **{str(status.value): _answer(route, status) for status in sorted(route.answers)},
            **{str(status.value): _problem(status) for status in problems},
        },
    }
    if route.body is not None:
        content = {"schema": _ref(route.body), "examples": EXAMPLES[route.body]}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    if route.body is JobRequest:
        operation["requestBody"]["description"] = (
            f"A body has at most {MAX_BODY_BYTES:,} bytes as sent. A larger body, or one with too "
            "many ids, is answered with 413; send the ids as a file, see POST /v1/uploads."
        )
    return operation


def _answer(route: Route, status: HTTPStatus) -> Schema:
    headers = _headers(("X-Request-Id", *route.headers), route.sometimes)
    answer: Schema = {"description": TITLES[status], "headers": headers}
    if status is HTTPStatus.NOT_MODIFIED:
        return answer
    schema: Schema = {"type": "object"}
    if route.name == "create_job" and status is HTTPStatus.OK:
        # The job that has the subject, or what was seen by looking only.
        schema = {"anyOf": [_ref(schemas.JobAnswer), _ref(schemas.Preview)]}
    elif (model := route.answers[status]) is not None:
        schema = _ref(model)
    return {**answer, "content": {"application/json": {"schema": schema}}}


def _problem(status: HTTPStatus) -> Schema:
    content = {"application/problem+json": {"schema": _ref(schemas.ProblemAnswer)}}
    if status in FIREWALL:
        content["application/json"] = {"schema": _ref(schemas.FirewallAnswer)}
    return {
        "description": TITLES[status],
        "headers": _headers(("X-Request-Id",), ("Retry-After",) if status in LATER else ()),
        "content": content,
    }


def _headers(always: Iterable[str], sometimes: Iterable[str]) -> Schema:
    return {
        **{name: {"required": True, **HEADERS[name]} for name in always},
        **{name: {"required": False, **HEADERS[name]} for name in sometimes},
    }


def _ref(model: type[BaseModel]) -> Schema:
    return {"$ref": REF.format(model=model.__name__)}


def _schemas() -> Schema:
    _, definitions = models_json_schema(list(_models()), ref_template=REF)
    made: Schema = definitions["$defs"]
    _left_out(made)
    # Within allOf: generators take a oneOf beside properties for the whole of the model.
    made["JobRequest"]["allOf"] = [{"oneOf": [{"required": [name]} for name in SELECTIONS]}]
    for body in {route.body for route in ROUTES if route.body is not None}:
        _say_defaults(made[body.__name__])
    made["JobRequest"]["properties"]["ids"]["maxItems"] = Limits().max_inline_ids
    return dict(sorted(made.items()))


def _models() -> Iterable[tuple[type[BaseModel], JsonSchemaMode]]:
    yield schemas.ProblemAnswer, "serialization"
    yield schemas.FirewallAnswer, "serialization"
    yield schemas.Preview, "serialization"
    for route in ROUTES:
        if route.body is not None:
            yield route.body, "validation"
        for model in route.answers.values():
            if model is not None:
                yield model, "serialization"


def _say_defaults(body: Schema) -> None:
    """A field of a body that may be left out has its default in words: generators of types take a
    field with a default for one that is always there."""
    for schema in body["properties"].values():
        if "default" in schema:
            value = json.dumps(schema.pop("default"))
            said = f"{value} when left out."
            schema["description"] = " ".join(filter(None, (schema.get("description"), said)))


def _left_out(part: object) -> None:
    """A field whose default is null is one that is left out: null itself is never there."""
    if isinstance(part, dict):
        for child in part.values():
            _left_out(child)
        for schema in (part.get("properties") or {}).values():
            schema.pop("title", None)  # its name again, in capitals
            if schema.get("default", ...) is None:
                del schema["default"]
                _without_null(schema)
    elif isinstance(part, list):
        for child in part:
            _left_out(child)


def _without_null(schema: Schema) -> None:
    kinds: Sequence[Schema] = schema.pop("anyOf", ())
    rest = [kind for kind in kinds if kind != {"type": "null"}]
    schema.update(rest[0] if len(rest) == 1 else {"anyOf": rest} if rest else {})

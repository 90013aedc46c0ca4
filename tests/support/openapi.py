"""Answers of the API held against its own committed document, more strictly than clients have to:
a field, status or header that the document does not name is a fault."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from jsonschema_rs import Draft202012Validator

from handlers.web.openapi_document import FILE

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCUMENT: Final[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))


def check_answer(
    method: str, path: str, status: int, headers: Mapping[str, str], body: object
) -> None:
    """Raises AssertionError. headers: names in lower case. A path that is no route's may only be
    answered with a problem."""
    operation = _operation(method, path)
    responses = operation["responses"] if operation else _any_problem()
    assert str(status) in responses, f"{method} {path}: {status} is not documented"
    response = responses[str(status)]
    for name, header in response["headers"].items():
        assert name.lower() in headers or not header["required"], f"{method} {path}: no {name}"
    stray = {"location", "retry-after", "etag", "idempotency-replayed"} & headers.keys()
    stray -= {name.lower() for name in response["headers"]}
    assert not stray, f"{method} {path}: {status}: {stray} is not documented"
    if "content" not in response:
        assert body is None
        return
    content = response["content"].get(headers["content-type"])
    assert content is not None, f"{method} {path}: {headers['content-type']} is not documented"
    for error in _validator(json.dumps(content["schema"])).iter_errors(body):
        raise AssertionError(f"{method} {path}: {status}: {error}")


def _operation(method: str, path: str) -> dict[str, Any] | None:
    for pattern, operations in DOCUMENT["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path):
            found: dict[str, Any] | None = operations.get(method.lower())
            return found
    return None


def _any_problem() -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"]["/v1/jobs/{job_id}"]["get"]["responses"]
    problems = {status: response for status, response in found.items() if status >= "400"}
    # No operation's own: the path has the method of none.
    return {**problems, "405": problems["404"]}


@cache
def _validator(schema: str) -> Draft202012Validator:
    components = json.loads(json.dumps(DOCUMENT["components"]))
    for model in components["schemas"].values():
        if "properties" in model:
            model.setdefault("additionalProperties", False)
    return Draft202012Validator(
        {**json.loads(schema), "components": components}, validate_formats=True
    )

"""The document is the code's: regenerated it is the same, and it has every route and no other."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from handlers import api
from handlers.jobs.selection.request import JobRequest
from handlers.jobs.words.limits import MAX_BODY_BYTES, Limits
from handlers.settings import CallerSettings
from handlers.web.openapi_build import document, text
from handlers.web.openapi_document import packaged, served
from handlers.web.routes import ROUTES
from tests.support.openapi import _validator, check_answer

HEADERS = {"content-type": "application/json", "x-request-id": "r", "etag": "t"}
JOB = {
    "id": f"{1:032x}",
    "url": "/v1/jobs/1",
    "operation": "o",
    "subject": "s",
    "lane": "small",
    "state": "QUEUED",
    "selection": "ids",
    "duplicates": 0,
    "succeeded": 0,
    "failed": 0,
    "skipped": 0,
    "attempt": 0,
    "created_at": "2026-01-02T03:04:05.678Z",
}


def test_what_is_committed_is_what_the_code_says() -> None:
    assert packaged() == text(), "run: make openapi"


def test_every_route_is_documented_and_there_are_no_others() -> None:
    resolver = api.app
    routes = [*resolver._static_routes, *resolver._dynamic_routes]
    assert {
        (route.method, re.sub(r"<(\w+)>", r"{\1}", route.path), route.func.__name__)
        for route in routes
    } == {(route.method.upper(), route.path, route.name) for route in ROUTES}


def test_operations_are_named_once() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)


def test_no_reference_leads_nowhere() -> None:
    made = document()
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', text()))
    assert references <= set(made["components"]["schemas"])
    assert "JobRequest" in references


def test_a_request_selects_in_exactly_one_way() -> None:
    schema = document()["components"]["schemas"]["JobRequest"]
    assert [part["required"] for part in schema["allOf"][0]["oneOf"]] == [
        ["ids"],
        ["upload_id"],
        ["query"],
    ]
    assert set(schema["properties"]) == set(JobRequest.model_fields)
    assert schema["additionalProperties"] is False


def test_both_limits_of_a_request_are_stated() -> None:
    made = document()
    ids = made["components"]["schemas"]["JobRequest"]["properties"]["ids"]
    assert ids["maxItems"] == Limits().max_inline_ids
    assert (
        f"{MAX_BODY_BYTES:,} bytes"
        in made["paths"]["/v1/jobs"]["post"]["requestBody"]["description"]
    )


def test_either_scheme_opens_every_route() -> None:
    made = document()
    for route in ROUTES:
        security = made["paths"][route.path][route.method]["security"]
        assert security == [{"token": [route.scope.value]}, {"iam": []}]
    assert made["components"]["securitySchemes"].keys() == {"token", "iam"}


@pytest.mark.parametrize(
    "changed",
    [
        {"secret": "x"},
        {"state": "DONE"},
        {"id": "7"},
        {"total": None},
        {"succeeded": -1},
        {"created_at": "yesterday"},
        {"progress": {"percent": 101}},
        {"progress": {"rate": 1}},
        {"labels": {"a": 1}},
    ],
)
def test_an_answer_that_is_not_as_documented_is_noticed(changed: dict[str, Any]) -> None:
    check_answer("GET", f"/v1/jobs/{1:032x}", 200, HEADERS, JOB)
    with pytest.raises(AssertionError):
        check_answer("GET", f"/v1/jobs/{1:032x}", 200, HEADERS, {**JOB, **changed})


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (418, HEADERS),
        (200, {**HEADERS, "content-type": "text/html"}),
        (200, {"content-type": "application/json"}),
    ],
)
def test_an_undocumented_status_type_or_a_missing_header_is_noticed(
    status: int, headers: dict[str, str]
) -> None:
    with pytest.raises(AssertionError):
        check_answer("GET", f"/v1/jobs/{1:032x}", status, headers, JOB)


# --- clients that are generated ---------------------------------------------------------------


def operations() -> list[dict[str, Any]]:
    return [operation for path in document()["paths"].values() for operation in path.values()]


def test_c87_a_body_is_a_model_with_its_fields_and_nothing_beside_them() -> None:
    """A generator that meets oneOf beside properties makes a union of nothing, and no model."""
    for route in ROUTES:
        if route.body is None:
            continue
        schema = document()["components"]["schemas"][route.body.__name__]
        assert schema["type"] == "object"
        assert not {"oneOf", "anyOf"} & schema.keys()


def test_c87_what_may_be_left_out_of_a_body_has_its_default_in_words() -> None:
    """A generator of types takes a field with a default for one that is always there."""
    for route in ROUTES:
        if route.body is None:
            continue
        schema = document()["components"]["schemas"][route.body.__name__]
        for name, field in route.body.model_fields.items():
            shown = schema["properties"][name]
            assert "default" not in shown
            if not field.is_required() and field.default not in {None, PydanticUndefined}:
                assert f"{json.dumps(field.default)} when left out." in shown["description"]


def test_c87_an_answer_declares_the_headers_that_it_can_have() -> None:
    made = document()["paths"]["/v1/jobs"]["post"]["responses"]
    assert {"Location", "Idempotency-Replayed"} <= made["202"]["headers"].keys()
    for operation in operations():
        for status, response in operation["responses"].items():
            assert response["headers"]["X-Request-Id"]["required"] is True
            assert all(header["description"] for header in response["headers"].values())
            if status in {"409", "429", "503"}:
                assert response["headers"]["Retry-After"]["required"] is False


def test_c87_there_are_servers_tags_and_examples_that_are_accepted() -> None:
    made = document()
    [server] = made["servers"]
    named = set(re.findall(r"{(\w+)}", server["url"]))
    assert named == server["variables"].keys()
    tags = {tag["name"] for tag in made["tags"]}
    for operation in operations():
        assert set(operation["tags"]) <= tags
        body = operation.get("requestBody")
        if body is not None:
            content = body["content"]["application/json"]
            assert content["examples"]
            schema = json.dumps(content["schema"])
            for example in content["examples"].values():
                assert not list(_validator(schema).iter_errors(example["value"]))


@pytest.mark.parametrize("base", ["/live", "", "/some/path"])
def test_c87_a_served_document_names_its_own_address(base: str) -> None:
    caller = CallerSettings(caller_auth="token")
    made = json.loads(served(caller, Limits(), base))
    assert made["servers"] == [{"url": base or "/"}]

"""Requests made up from the OpenAPI document, sent to the local stack: whatever comes in, no answer
is a server error, and every answer is one the document has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from handlers.web.openapi_document import packaged
from scripts.local.stack import LocalStack

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import APIOperation

    Operation = APIOperation[Any, Any, Any, Any]

TENANT: Final = "fuzz"
EXAMPLES: Final = 40
"""Of each operation, in each mode: good requests and spoiled ones."""
CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA: Final = schemathesis.openapi.from_dict(json.loads(packaged()))
OPERATIONS: Final = {
    found.ok().label: found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)
}
KNOWN: Final[tuple[dict[str, Any], ...]] = (
    {"operation": "set_fields", "params": {"fields": {"a": "x"}}},
    {"operation": "adjust_number", "params": {"field": "price", "add": 1}},
    {"operation": "delete_records", "params": {}},
    {"operation": "reindex"},
)


@pytest.fixture(scope="module")
def jobs(stack: LocalStack) -> list[str]:
    """Some that are there: made-up ids lead to none."""
    made = []
    for number in range(4):
        answer = stack.api.call(
            "POST",
            "/v1/jobs",
            tenant=TENANT,
            body={
                "operation": "set_fields",
                "subject": f"s{number}",
                "ids": ["1", "2"],
                "params": {"fields": {"a": number}},
            },
        )
        assert answer.status == 202, answer
        made.append(str(answer.body["id"]))
    return made


def requested(
    operation: Operation, mode: GenerationMode, jobs: list[str]
) -> st.SearchStrategy[Case[Operation]]:
    """Made-up requests; some about jobs and operations that are there."""

    def known(case: Case[Operation], job: str | None, work: Any) -> Case[Operation]:
        if job is not None and "job_id" in (case.path_parameters or {}):
            case.path_parameters["job_id"] = job
        if work is not None and isinstance(case.body, dict) and "operation" in case.body:
            case.body |= work
        return case

    return st.builds(
        known,
        operation.as_strategy(generation_mode=mode),
        st.sampled_from([*jobs, None]),
        st.sampled_from([*KNOWN, None]),
    )


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("label", OPERATIONS)
def test_whatever_comes_in_the_answer_is_documented(
    stack: LocalStack, jobs: list[str], label: str, mode: GenerationMode
) -> None:
    operation = OPERATIONS[label]
    if mode is GenerationMode.NEGATIVE and not (operation.query or operation.body):
        pytest.skip("nothing in it can be spoiled")
    session = requests.Session()
    headers = {"Authorization": f"Bearer {stack.issuer.token(TENANT)}"}

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=requested(operation, mode, jobs))
    def run(case: Case[Operation]) -> None:
        response = case.call(base_url=stack.api.url, session=session, headers=headers, timeout=600)
        case.validate_response(response, checks=CHECKS)

    with session:
        run()

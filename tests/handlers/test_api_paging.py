"""Lists in pages, and tokens that only go on where they came from."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

JOB_ID = f"{7:032x}"


def many(stack: Deployment, count: int) -> list[str]:
    """Ids of new jobs, newest first."""
    made = [stack.created(["a"], f"s{n}") for n in range(count)]
    return sorted(made, reverse=True)


def page(stack: Deployment, **query: str) -> Any:
    answer = stack.call("GET", "/v1/jobs", query=query)
    assert answer.status == 200, answer
    return answer.body


def ids_of(body: Any) -> list[str]:
    return [each["id"] for each in body["jobs"]]


def token(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def content_of(text: str) -> dict[str, str]:
    content: dict[str, str] = json.loads(base64.urlsafe_b64decode(text))
    return content


def test_an_empty_list(stack: Deployment) -> None:
    assert page(stack) == {"jobs": []}


def test_newest_first_and_only_the_tenants_own(stack: Deployment) -> None:
    mine = many(stack, 3)
    stack.created(["a"], tenant="other")
    assert ids_of(page(stack)) == mine
    assert page(stack)["jobs"][0] == stack.call("GET", f"/v1/jobs/{mine[0]}").body


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_hold_every_job_once(stack: Deployment, limit: int) -> None:
    mine = many(stack, 4)
    seen: list[str] = []
    query = {"limit": str(limit)}
    while True:
        body = page(stack, **query)
        assert len(body["jobs"]) <= limit
        seen += ids_of(body)
        if "next" not in body:
            break
        query["page"] = body["next"]
    assert seen == mine


def test_a_token_goes_on_where_it_stood_whatever_came_since(stack: Deployment) -> None:
    mine = many(stack, 4)
    first = page(stack, limit="2")
    newer = stack.created(["a"], "newer")
    for _ in range(2):
        assert ids_of(page(stack, limit="2", page=first["next"])) == mine[2:]
    assert ids_of(page(stack))[0] == newer


@pytest.mark.parametrize(
    "limit", ["0", "-1", "201", "1.0", "1e2", "", " 1", "+1", "²", "٣", "x", "9" * 5000, "0x1"]
)
def test_a_bad_limit_is_named(stack: Deployment, limit: str) -> None:
    answer = stack.call("GET", "/v1/jobs", query={"limit": limit})
    assert (answer.status, answer.body["field"]) == (400, "limit")


@pytest.mark.parametrize("limit", ["1", "200"])
def test_the_bounds_of_limit_are_allowed(stack: Deployment, limit: str) -> None:
    assert page(stack, limit=limit) == {"jobs": []}


NONSENSE = {
    "empty": "",
    "no base64": "*",
    "not ascii": "é",
    "no json": base64.urlsafe_b64encode(b"{").decode(),
    "no text": base64.urlsafe_b64encode(b"\xff\xfe\x00").decode(),
    "deep": base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    "null": token(None),
    "list": token([1]),
    "nothing": token({}),
    "number": token({"by_tenant_sk": 7}),
}


@pytest.mark.parametrize("text", NONSENSE.values(), ids=NONSENSE.keys())
def test_what_is_no_token_is_named(stack: Deployment, text: str) -> None:
    answer = stack.call("GET", "/v1/jobs", query={"page": text})
    assert (answer.status, answer.body["field"]) == (400, "page")


@pytest.mark.parametrize(
    "changed",
    [
        {"by_tenant_pk": "other"},
        {"by_tenant_pk": ""},
        {"by_tenant_sk": JOB_ID},
        {"by_tenant_sk": ""},
        {"by_tenant_sk": "x" * 5000},
        {"by_tenant_sk": None},
        {"pk": f"JOB#{JOB_ID}"},
        {"pk": "TENANT#other"},
        {"sk": "LEASE"},
        {"more": "x"},
        {"due_pk": "dispatch#0"},
        {"pk": f"JOB#{JOB_ID}", "by_tenant_sk": JOB_ID, "by_tenant_pk": "other"},
    ],
)
def test_a_changed_token_is_refused(stack: Deployment, changed: dict[str, object]) -> None:
    many(stack, 2)
    good = content_of(page(stack, limit="1")["next"])
    assert stack.call("GET", "/v1/jobs", query={"page": token(good)}).status == 200
    answer = stack.call("GET", "/v1/jobs", query={"page": token({**good, **changed})})
    assert (answer.status, answer.body["field"]) == (400, "page")


def test_a_token_without_a_part_is_refused(stack: Deployment) -> None:
    many(stack, 2)
    good = content_of(page(stack, limit="1")["next"])
    for name in good:
        less = {key: value for key, value in good.items() if key != name}
        assert stack.call("GET", "/v1/jobs", query={"page": token(less)}).status == 400


def test_another_tenants_token_is_refused(stack: Deployment) -> None:
    many(stack, 2)
    text = page(stack, limit="1")["next"]
    answer = stack.call("GET", "/v1/jobs", query={"page": text}, tenant="other")
    assert (answer.status, answer.body["field"]) == (400, "page")

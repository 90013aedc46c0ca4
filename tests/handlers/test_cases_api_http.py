"""Methods and kinds of bodies: what HTTP has an answer for is answered so."""

from __future__ import annotations

import base64
import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.web.routes import ROUTES
from tests.handlers.deployment import job

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

UNKNOWN: Final = f"{0:032x}"
METHODS: Final = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
PATHS: Final = sorted({route.path for route in ROUTES})
WITH_BODY: Final = sorted(route.path for route in ROUTES if route.body is not None)


def path_of(pattern: str) -> str:
    return pattern.replace("{job_id}", UNKNOWN)


def methods_of(pattern: str) -> set[str]:
    own = {route.method.upper() for route in ROUTES if route.path == pattern}
    return own | ({"HEAD"} if "GET" in own else set())


@pytest.mark.parametrize("pattern", PATHS)
def test_c90_another_method_of_a_known_route_is_405_with_allow(
    stack: Deployment, pattern: str
) -> None:
    with stack.counted() as calls:
        for method in set(METHODS) - methods_of(pattern):
            answer = stack.call(method, path_of(pattern), documented=method != "HEAD")
            assert answer.status == 405, method
            code = None if method == "HEAD" else answer.body["code"]
            assert code in {None, "method_not_allowed"}
            assert set(answer.headers["allow"].split(", ")) == methods_of(pattern)
    assert calls == []


@pytest.mark.parametrize("pattern", [path for path in PATHS if "GET" in methods_of(path)])
def test_c90_head_is_get_without_the_body(stack: Deployment, pattern: str) -> None:
    path = path_of(pattern).replace(UNKNOWN, stack.created(["a"]))
    asked = {"/items": {"outcome": "failed"}, "/subjects": {"name": "s"}}
    query = next((query for end, query in asked.items() if path.endswith(end)), None)
    get = stack.call("GET", path, query=query)
    head = stack.call("HEAD", path, query=query, documented=False)
    assert (head.status, head.headers) == (get.status, get.headers)
    assert head.status == 200
    assert head.body is None


@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT"])
@pytest.mark.parametrize("pattern", PATHS)
def test_c90_a_slash_at_the_end_is_no_route(stack: Deployment, pattern: str, method: str) -> None:
    """Whose id is empty: it used to list all jobs."""
    with stack.counted() as calls:
        answer = stack.call(method, path_of(pattern) + "/", documented=False)
    assert answer.status == 404
    assert calls == []


TAKEN: Final = (
    "application/json",
    "Application/JSON; charset=UTF-8",
    'application/json;charset="utf-8"',
    "application/merge-patch+json",
    "",
)
NOT_TAKEN: Final = (
    ({"Content-Type": "application/x-www-form-urlencoded"}, "Content-Type", "form-urlencoded"),
    ({"Content-Type": "multipart/form-data; boundary=x"}, "Content-Type", "multipart/form-data"),
    ({"Content-Type": "text/plain"}, "Content-Type", "text/plain"),
    ({"Content-Type": "application/jsonl"}, "Content-Type", "application/jsonl"),
    ({"Content-Type": "application/json; charset=latin-1"}, "Content-Type", "latin-1"),
    ({"Content-Type": ";"}, "Content-Type", "of nothing"),
    ({"Content-Encoding": "gzip"}, "Content-Encoding", "gzip"),
    ({"Content-Encoding": "br, gzip"}, "Content-Encoding", "br, gzip"),
)


@pytest.mark.parametrize("stated", TAKEN)
def test_c90_json_is_taken_however_it_is_called(stack: Deployment, stated: str) -> None:
    assert stack.create(["a"], headers={"Content-Type": stated}).status == 202


@pytest.mark.parametrize(("headers", "field", "named"), NOT_TAKEN, ids=str)
@pytest.mark.parametrize("path", WITH_BODY)
def test_c90_another_kind_of_body_is_415_and_the_text_says_what_is_taken(
    stack: Deployment, path: str, headers: dict[str, str], field: str, named: str
) -> None:
    body: Any = job(["a"]) if path.endswith("jobs") else {"format": "jsonl"}
    with stack.counted() as calls:
        answer = stack.call("POST", path, body, headers=headers)
    assert (answer.status, answer.body["code"]) == (415, "unsupported_media_type")
    assert answer.body["field"] == field
    assert named in answer.body["detail"]
    taken = "accept" if field == "Content-Type" else "accept-encoding"
    assert answer.headers[taken] == ("application/json" if taken == "accept" else "identity")
    assert calls == []


@pytest.mark.parametrize("path", WITH_BODY)
def test_c90_compressed_data_that_is_called_json_is_told_from_broken_json(
    stack: Deployment, path: str
) -> None:
    packed = gzip.compress(json.dumps(job(["a"])).encode())
    forms: tuple[tuple[str, bool], ...] = (
        (base64.b64encode(packed).decode(), True),
        (packed.decode(errors="replace"), False),
    )
    for text, encoded in forms:
        answer = stack.call("POST", path, text, isBase64Encoded=encoded)
        assert (answer.status, answer.body["field"]) == (415, "Content-Encoding")
        assert "compressed" in answer.body["detail"]


def test_c90_a_verb_needs_no_kind_of_body(stack: Deployment) -> None:
    id_ = stack.created(["a"])
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert stack.call("POST", f"/v1/jobs/{id_}/pause", headers=headers).status == 202

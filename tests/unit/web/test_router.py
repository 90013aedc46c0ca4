"""Which function answers a request, and what of the request a function sees."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, cast

import pytest

from handlers.web.request import Request
from handlers.web.responses import Response
from handlers.web.router import Router


def routes() -> Router:
    router = Router()

    @router.get("/v1/jobs")
    def many(said: str) -> Response:
        return Response(HTTPStatus.OK, {}, f"many {said}")

    @router.get("/v1/jobs/{job_id}")
    def one(said: str, job_id: str) -> Response:
        return Response(HTTPStatus.OK, {}, f"{said} {job_id}")

    @router.post("/v1/jobs/{job_id}/cancel")
    def cancel(said: str, job_id: str) -> Response:
        return Response(HTTPStatus.OK, {}, f"cancel {said} {job_id}")

    return router


def found(method: str, path: str) -> str | None:
    act = routes().find(method, path)
    return None if act is None else act("x").body


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/jobs", "many x"),
        ("GET", "/v1/jobs/7", "x 7"),
        ("GET", "/v1/jobs/é \n{", "x é \n{"),
        ("POST", "/v1/jobs/7/cancel", "cancel x 7"),
        ("POST", "/v1/jobs", None),
        ("post", "/v1/jobs/7/cancel", None),
        ("GET", "/v1/jobs/", None),
        ("GET", "/v1/jobs/7/", None),
        ("GET", "/v1/jobs/7/cancel", None),
        ("POST", "/v1/jobs//cancel", None),
        ("GET", "//v1/jobs", None),
        ("GET", "v1/jobs", None),
        ("GET", "", None),
    ],
)
def test_a_function_is_found_by_method_and_whole_path(
    method: str, path: str, body: str | None
) -> None:
    assert found(method, path) == body


def request(**event: object) -> Request:
    made = {"httpMethod": "GET", "path": "/", "requestContext": {}, **event}
    return Request(made, cast("Any", None))


@pytest.mark.parametrize("name", ["Idempotency-Key", "idempotency-key", "IDEMPOTENCY-KEY"])
def test_the_case_of_a_header_does_not_matter(name: str) -> None:
    assert request(headers={"x": "0", name: "k"}).header("Idempotency-Key") == "k"


@pytest.mark.parametrize("sent", [{"headers": None}, {"headers": {}}, {}])
def test_a_header_that_was_not_sent_is_none(sent: dict[str, object]) -> None:
    assert request(**sent).header("Idempotency-Key") is None


@pytest.mark.parametrize("body", [None, ""])
def test_no_body_is_an_empty_text(body: str | None) -> None:
    assert request(body=body, isBase64Encoded=False).text() == ""


def test_an_answer_is_what_the_gateway_takes() -> None:
    response = Response(HTTPStatus.ACCEPTED, {"A": "1", "B": "2"}, "é")
    assert response.result() == {
        "statusCode": 202,
        "multiValueHeaders": {"A": ["1"], "B": ["2"]},
        "body": "é",
        "isBase64Encoded": False,
    }
    assert response.result(without_body=True) == {**response.result(), "body": ""}

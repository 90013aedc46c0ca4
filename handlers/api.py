"""The API's Lambda: requests in, answers or problems out. No route names a tenant; it comes from
the verified token."""

from __future__ import annotations

import json
import os
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from .bootstrap import work_settings, world
from .jobs import control
from .jobs.errors import Transient
from .jobs.model import Job
from .jobs.replay import replay
from .jobs.submit import Busy
from .web.creating import Creation, busy
from .web.pages import jobs_page
from .web.previewing import preview_view, upload_view, wants_preview
from .web.problems import Problem, not_found, unavailable
from .web.views import is_job_id, job_view, location

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from .jobs.control import Answer
    from .jobs.ports import World

SERVICE: Final = "api"
JSON: Final = "application/json"

app = APIGatewayRestResolver()


@app.post("/v1/jobs")
def create_job() -> Response[str]:
    creation = Creation(_world(), work_settings().idempotency_table)
    query = app.current_event.query_string_parameters or {}
    if wants_preview(query.get("validate_only")):
        accepted = creation.accepted(_body())
        return _answer(HTTPStatus.OK, preview_view(_world(), _tenant(), accepted))
    key = app.current_event.headers.get("Idempotency-Key")
    view, replayed = creation.create(_tenant(), _body(), key, app.lambda_context)
    headers = {"Location": location(view["id"])}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return _answer(HTTPStatus.ACCEPTED, view, headers)


@app.post("/v1/uploads")
def create_upload() -> Response[str]:
    return _answer(HTTPStatus.CREATED, upload_view(_world(), _tenant(), _body()))


@app.get("/v1/jobs")
def list_jobs() -> Response[str]:
    query = app.current_event.query_string_parameters or {}
    return _answer(
        HTTPStatus.OK, jobs_page(_world(), _tenant(), query.get("limit"), query.get("page"))
    )


@app.get("/v1/jobs/<job_id>")
def get_job(job_id: str) -> Response[str]:
    tenant = _tenant()
    job = control.find(_world(), tenant, job_id) if is_job_id(job_id) else None
    if job is None:
        raise _no_job()
    return _answer(HTTPStatus.OK, job_view(job))


@app.post("/v1/jobs/<job_id>/cancel")
def cancel_job(job_id: str) -> Response[str]:
    return _controlled(control.cancel, job_id)


@app.post("/v1/jobs/<job_id>/pause")
def pause_job(job_id: str) -> Response[str]:
    return _controlled(control.pause, job_id)


@app.post("/v1/jobs/<job_id>/resume")
def resume_job(job_id: str) -> Response[str]:
    return _controlled(control.resume, job_id)


@app.post("/v1/jobs/<job_id>/retry")
def retry_job(job_id: str) -> Response[str]:
    return _controlled(control.retry, job_id)


@app.post("/v1/jobs/<job_id>/effects/replay")
def replay_effects(job_id: str) -> Response[str]:
    return _controlled(replay, job_id)


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    return app.resolve(event, context)


# --- shared -----------------------------------------------------------------------------------


def _controlled(act: Callable[[World, str, str], Answer], job_id: str) -> Response[str]:
    tenant = _tenant()
    if not is_job_id(job_id):
        raise _no_job()
    answer = act(_world(), tenant, job_id)
    match answer:
        case Job():
            return _answer(HTTPStatus.ACCEPTED, job_view(answer))
        case control.NoSuchJob():
            raise _no_job()
        case Busy():
            raise busy(answer)
        case control.NotPossible(job, why):
            raise Problem(
                HTTPStatus.CONFLICT,
                "not_possible",
                f"the job is {job.state}: {why}",
                more={"state": job.state.value},
            )


def _no_job() -> Problem:
    return not_found("there is no such job")


def _world() -> World:
    return world(SERVICE)


def _tenant() -> str:
    """Only from the authorizer's context; a deployment without one lets nobody in."""
    authorizer = app.current_event.raw_event["requestContext"].get("authorizer") or {}
    tenant = authorizer.get("tenant")
    if not isinstance(tenant, str) or not tenant:
        raise Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", "no verified tenant")
    return tenant


def _body() -> str:
    try:
        return app.current_event.decoded_body or ""
    except ValueError as error:
        raise Problem(
            HTTPStatus.BAD_REQUEST, "bad_request", "the body is not UTF-8", field="body"
        ) from error


def _answer(
    status: HTTPStatus, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
) -> Response[str]:
    return Response(
        status_code=status.value,
        content_type=JSON,
        body=json.dumps(body, separators=(",", ":")),
        headers={**(headers or {}), "X-Request-Id": _request_id()},
    )


def _request_id() -> str:
    return str(app.current_event.raw_event["requestContext"].get("requestId", ""))


def _problem(problem: Problem) -> Response[str]:
    _log(problem.status, problem.detail)
    return problem.response(_request_id())


def _unavailable(error: Transient) -> Response[str]:
    _log(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
    return unavailable(error).response(_request_id())


def _internal(error: Exception) -> Response[str]:
    _world().telemetry.log("request_crashed", request_id=_request_id(), error=error)
    problem = Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "something broke on our side")
    return problem.response(_request_id())


def _no_route(_error: Exception) -> Response[str]:
    return not_found("there is no such route").response(_request_id())


def _log(status: HTTPStatus, detail: str) -> None:
    _world().telemetry.log(
        "request_refused", request_id=_request_id(), status=status.value, why=detail
    )


app.exception_handler(Problem)(_problem)
app.exception_handler(Transient)(_unavailable)
app.exception_handler(Exception)(_internal)
app.not_found(_no_route)

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    _world()

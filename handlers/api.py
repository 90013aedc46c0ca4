"""The API's Lambda: requests in, answers or problems out. No route names a tenant; it comes from
the verified token."""

from __future__ import annotations

import json
import os
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from . import cold_start
from .bootstrap import work_settings, world
from .jobs.lifecycle import control
from .jobs.lifecycle.submit import Busy, TooMany
from .jobs.lifecycle.waiting import wait_now
from .jobs.storage.windows import RequestRate
from .jobs.words.errors import Transient
from .jobs.words.job import Job
from .settings import CallerSettings
from .web.caller import Callers, Scope
from .web.create_job import Creation, OnConflict, SubjectBusy, no_room
from .web.problems import Problem, not_found, throttled, unavailable
from .web.query import Query
from .web.request import Request
from .web.responses import answer, not_modified, raw
from .web.router import Router
from .web.views import etag, is_job_id, job_view, look_again, matches

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from .jobs.lifecycle.control import Answer
    from .jobs.words.ports import World
    from .web.responses import Response

    Act = Callable[[World, str, str, str], Answer]

SERVICE: Final = "api"

router = Router()

# A route itself imports what only it needs: the function starts with what most routes need.


@router.post("/v1/jobs")
def create_job(request: Request) -> Response:
    tenant, query = _tenant(request, Scope.WRITE), _query(request, "validate_only", "on_conflict")
    creation = Creation(_world(), work_settings().idempotency_table, request.base, _by(request))
    if query.flag("validate_only"):
        from .web.preview_job import preview_view  # noqa: PLC0415

        accepted = creation.accepted(request.text())
        return answer(HTTPStatus.OK, preview_view(_world(), tenant, accepted), request.id)
    conflict = query.choice("on_conflict", OnConflict) or OnConflict.REJECT
    key = request.header("Idempotency-Key")
    made = creation.create(tenant, request.text(), key, request.context, conflict)
    headers = {"Location": made.view["url"]}
    if made.replayed:
        headers["Idempotency-Replayed"] = "true"
    status = HTTPStatus.OK if made.existing else HTTPStatus.ACCEPTED
    return answer(status, made.view, request.id, headers)


@router.post("/v1/uploads")
def create_upload(request: Request) -> Response:
    from .web.preview_job import upload_view  # noqa: PLC0415

    tenant, _ = _tenant(request, Scope.WRITE), _query(request)
    view = upload_view(_world(), tenant, request.text())
    return answer(HTTPStatus.CREATED, view, request.id)


@router.get("/v1/jobs")
def list_jobs(request: Request) -> Response:
    from .web.job_list import PARAMETERS, jobs_page  # noqa: PLC0415

    tenant, query = _tenant(request, Scope.READ), _query(request, *PARAMETERS)
    return answer(HTTPStatus.OK, jobs_page(_world(), tenant, query, request.base), request.id)


@router.get("/v1/jobs/{job_id}")
def get_job(request: Request, job_id: str) -> Response:
    job, _ = _job(request, job_id), _query(request)
    now = _world().runtime.now()
    view = job_view(job, now, wait_now(_world(), job), base=request.base)
    tag, wait = etag(view), look_again(job, now)
    headers = {"ETag": tag, **({} if wait is None else {"Retry-After": str(wait)})}
    if matches(request.header("If-None-Match"), tag):
        return not_modified(request.id, headers)
    return answer(HTTPStatus.OK, view, request.id, headers)


@router.get("/v1/jobs/{job_id}/items")
def list_items(request: Request, job_id: str) -> Response:
    from .web.item_results import items_view  # noqa: PLC0415

    job, query = _job(request, job_id), _query(request, "outcome", "limit", "page")
    return answer(HTTPStatus.OK, items_view(_world(), job, query), request.id)


@router.post("/v1/jobs/{job_id}/report")
def create_report(request: Request, job_id: str) -> Response:
    from .web.item_results import report_view  # noqa: PLC0415

    job, query = _job(request, job_id), _query(request, "format", "outcome")
    remaining = request.context.get_remaining_time_in_millis
    view = report_view(_world(), job, query, remaining)
    return answer(HTTPStatus.CREATED, view, request.id, {"Location": view["url"]})


@router.post("/v1/jobs/{job_id}/cancel")
def cancel_job(request: Request, job_id: str) -> Response:
    return _controlled(request, control.cancel, job_id)


@router.post("/v1/jobs/{job_id}/pause")
def pause_job(request: Request, job_id: str) -> Response:
    return _controlled(request, control.pause, job_id)


@router.post("/v1/jobs/{job_id}/resume")
def resume_job(request: Request, job_id: str) -> Response:
    return _controlled(request, control.resume, job_id)


@router.post("/v1/jobs/{job_id}/retry")
def retry_job(request: Request, job_id: str) -> Response:
    tenant, query = _tenant(request, Scope.WRITE), _query(request, "failed_only")
    if not query.flag("failed_only"):
        return _done(request, control.retry, tenant, job_id)
    from .web.retry_failed import in_time  # noqa: PLC0415

    remaining = request.context.get_remaining_time_in_millis
    return _done(request, in_time(remaining), tenant, job_id)


@router.post("/v1/jobs/{job_id}/effects/replay")
def replay_effects(request: Request, job_id: str) -> Response:
    from .jobs.lifecycle.replay_effects import replay_effects as replay  # noqa: PLC0415

    return _controlled(request, replay, job_id)


@router.get("/v1/subjects")
def get_subject(request: Request) -> Response:
    from .web.subjects import subject_view  # noqa: PLC0415

    tenant, query = _tenant(request, Scope.READ), _query(request, "name")
    return answer(HTTPStatus.OK, subject_view(_world(), tenant, query, request.base), request.id)


@router.get("/v1/operations")
def list_operations(request: Request) -> Response:
    from .web.catalog import operations_view  # noqa: PLC0415

    _tenant(request, Scope.READ)
    _query(request)
    # The schemas of parameters may hold floats, as their authors wrote them.
    return raw(HTTPStatus.OK, json.dumps(operations_view(_world())), request.id)


@router.get("/v1/lanes")
def list_lanes(request: Request) -> Response:
    from .web.catalog import lanes_view  # noqa: PLC0415

    tenant, _ = _tenant(request, Scope.READ), _query(request)
    view = lanes_view(_world(), tenant)
    return answer(HTTPStatus.OK, view, request.id)


@router.get("/v1/openapi.json")
def openapi(request: Request) -> Response:
    from .web.openapi_document import served  # noqa: PLC0415

    _tenant(request, Scope.READ)
    _query(request)
    text = served(callers().settings, work_settings().limits, request.base)
    return raw(HTTPStatus.OK, text, request.id)


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """One request. Every answer's ``X-Request-Id`` is in the line that is logged about it."""
    started = _world().runtime.now()
    request = Request(event, context)
    response = _answered(request)
    _world().telemetry.log(
        "request_answered",
        request_id=request.id,
        method=event.get("httpMethod"),
        path=event.get("path"),
        principal=_by(request),
        status=response.status.value,
        ms=_world().runtime.now() - started,
    )
    return response.result(without_body=request.is_head)


def _answered(request: Request) -> Response:
    act = router.find(request.method, request.path)
    if act is None:
        from .web.methods import no_route  # noqa: PLC0415

        return no_route(request.path).response(request.id)
    try:
        return act(request)
    except Problem as problem:
        _log(request, problem.status, problem.detail)
        return problem.response(request.id)
    except Transient as error:
        _log(request, HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        return unavailable(error).response(request.id)
    except Exception as error:  # noqa: BLE001  an answer, whatever happens
        _world().telemetry.log("request_crashed", request_id=request.id, error=error)
        crash = Problem(
            HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the API met an unexpected error"
        )
        return crash.response(request.id)


# --- shared -----------------------------------------------------------------------------------


def _controlled(request: Request, act: Act, job_id: str) -> Response:
    tenant, _ = _tenant(request, Scope.WRITE), _query(request)
    return _done(request, act, tenant, job_id)


def _done(request: Request, act: Act, tenant: str, job_id: str) -> Response:
    if not is_job_id(job_id):
        raise _no_job()
    done = act(_world(), tenant, job_id, _by(request))
    match done:
        case Job():
            return _shown(request, HTTPStatus.ACCEPTED, done)
        case control.Unchanged(job):
            return _shown(request, HTTPStatus.OK, job)
        case control.NoSuchJob():
            raise _no_job()
        case Busy():
            raise SubjectBusy(done, request.base)
        case TooMany():
            raise no_room(done)
        case control.NotPossible(job, why):
            raise Problem(
                HTTPStatus.CONFLICT,
                "not_possible",
                f"the job is {job.state}: {why}",
                more={"state": job.state.value},
            )


def _shown(request: Request, status: HTTPStatus, job: Job) -> Response:
    view = job_view(job, _world().runtime.now(), base=request.base)
    return answer(status, view, request.id, {"Location": view["url"]})


def _job(request: Request, job_id: str) -> Job:
    """The caller's job. Raises Problem when there is none; another tenant's job is none."""
    tenant = _tenant(request, Scope.READ)
    job = control.find(_world(), tenant, job_id) if is_job_id(job_id) else None
    if job is None:
        raise _no_job()
    return job


def _no_job() -> Problem:
    return not_found("there is no such job")


def _world() -> World:
    return world(SERVICE)


@cache
def callers() -> Callers:
    """Raises SettingsError."""
    return Callers(CallerSettings.from_env(os.environ))


@cache
def request_rate() -> RequestRate | None:
    """None: requests are not limited. Raises SettingsError."""
    limit = work_settings().tenant_requests_per_second
    return None if limit is None else RequestRate(_world(), limit)


def _tenant(request: Request, needs: Scope) -> str:
    tenant = callers().tenant(request.verified, needs)
    rate = request_rate()
    wait = None if rate is None else rate.wait_ms(tenant)
    if wait is not None:
        raise throttled(wait)
    return tenant


def _by(request: Request) -> str:
    return callers().principal(request.verified)


def _query(request: Request, *known: str) -> Query:
    return Query(request.event, *known)


def _log(request: Request, status: HTTPStatus, detail: str) -> None:
    _world().telemetry.log(
        "request_refused", request_id=request.id, status=status.value, why=detail
    )


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # While the function starts: bad settings stop it here, and the first request need not wait.
    _world()
    callers()
    cold_start.done()

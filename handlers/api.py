"""The API's Lambda: requests in, answers or problems out. No route names a tenant; it comes from
the verified token."""

from __future__ import annotations

import json
import os
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response

from . import cold_start
from .bootstrap import work_settings, world
from .jobs.lifecycle import control
from .jobs.lifecycle.submit import Busy, TooMany
from .jobs.lifecycle.waiting import wait_now
from .jobs.storage.windows import RequestRate
from .jobs.words.errors import Transient
from .jobs.words.job import Job
from .settings import CallerSettings
from .web.addresses import base_path, route_path
from .web.caller import Callers, Scope
from .web.create_job import Creation, OnConflict, SubjectBusy, no_room
from .web.media import body_text
from .web.problems import Problem, not_found, throttled, unavailable
from .web.query import Query
from .web.responses import answer, not_modified, raw
from .web.views import etag, is_job_id, job_view, look_again, matches

if TYPE_CHECKING:
    from collections.abc import Callable

    from aws_lambda_powertools.utilities.typing import LambdaContext

    from .jobs.lifecycle.control import Answer
    from .jobs.words.ports import World

    Next = Callable[[APIGatewayRestResolver], Response[str]]
    Act = Callable[[World, str, str, str], Answer]

SERVICE: Final = "api"

app = APIGatewayRestResolver()


def _no_other_paths(here: APIGatewayRestResolver, go_on: Next) -> Response[str]:
    """A slash at the end is another path: ``/v1/jobs/`` has an empty id, and lists nothing."""
    if here.current_event.path.endswith("/"):
        raise not_found("there is no such route")
    return go_on(here)


app.use([_no_other_paths])

# A route itself imports what only it needs: the function starts with what most routes need.


@app.post("/v1/jobs")
def create_job() -> Response[str]:
    tenant, query = _tenant(Scope.WRITE), _query("validate_only", "on_conflict")
    creation = Creation(_world(), work_settings().idempotency_table, _base(), _by())
    if query.flag("validate_only"):
        from .web.preview_job import preview_view  # noqa: PLC0415

        accepted = creation.accepted(_body())
        return answer(HTTPStatus.OK, preview_view(_world(), tenant, accepted), _request_id())
    conflict = query.choice("on_conflict", OnConflict) or OnConflict.REJECT
    key = app.current_event.headers.get("Idempotency-Key")
    made = creation.create(tenant, _body(), key, app.lambda_context, conflict)
    headers = {"Location": made.view["url"]}
    if made.replayed:
        headers["Idempotency-Replayed"] = "true"
    status = HTTPStatus.OK if made.existing else HTTPStatus.ACCEPTED
    return answer(status, made.view, _request_id(), headers)


@app.post("/v1/uploads")
def create_upload() -> Response[str]:
    from .web.preview_job import upload_view  # noqa: PLC0415

    tenant, _ = _tenant(Scope.WRITE), _query()
    view = upload_view(_world(), tenant, _body())
    return answer(HTTPStatus.CREATED, view, _request_id())


@app.get("/v1/jobs")
def list_jobs() -> Response[str]:
    from .web.job_list import PARAMETERS, jobs_page  # noqa: PLC0415

    tenant, query = _tenant(Scope.READ), _query(*PARAMETERS)
    return answer(HTTPStatus.OK, jobs_page(_world(), tenant, query, _base()), _request_id())


@app.get("/v1/jobs/<job_id>")
def get_job(job_id: str) -> Response[str]:
    job, _ = _job(job_id), _query()
    now = _world().runtime.now()
    view = job_view(job, now, wait_now(_world(), job), base=_base())
    tag, wait = etag(view), look_again(job, now)
    headers = {"ETag": tag, **({} if wait is None else {"Retry-After": str(wait)})}
    if matches(app.current_event.headers.get("If-None-Match"), tag):
        return not_modified(_request_id(), headers)
    return answer(HTTPStatus.OK, view, _request_id(), headers)


@app.get("/v1/jobs/<job_id>/items")
def list_items(job_id: str) -> Response[str]:
    from .web.item_results import items_view  # noqa: PLC0415

    job, query = _job(job_id), _query("outcome", "limit", "page")
    return answer(HTTPStatus.OK, items_view(_world(), job, query), _request_id())


@app.post("/v1/jobs/<job_id>/report")
def create_report(job_id: str) -> Response[str]:
    from .web.item_results import report_view  # noqa: PLC0415

    job, query = _job(job_id), _query("format", "outcome")
    remaining = app.lambda_context.get_remaining_time_in_millis
    view = report_view(_world(), job, query, remaining)
    return answer(HTTPStatus.CREATED, view, _request_id(), {"Location": view["url"]})


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
    tenant, query = _tenant(Scope.WRITE), _query("failed_only")
    if not query.flag("failed_only"):
        return _done(control.retry, tenant, job_id)
    from .web.retry_failed import in_time  # noqa: PLC0415

    remaining = app.lambda_context.get_remaining_time_in_millis
    return _done(in_time(remaining), tenant, job_id)


@app.post("/v1/jobs/<job_id>/effects/replay")
def replay_effects(job_id: str) -> Response[str]:
    from .jobs.lifecycle.replay_effects import replay_effects as replay  # noqa: PLC0415

    return _controlled(replay, job_id)


@app.get("/v1/subjects")
def get_subject() -> Response[str]:
    from .web.subjects import subject_view  # noqa: PLC0415

    tenant, query = _tenant(Scope.READ), _query("name")
    return answer(HTTPStatus.OK, subject_view(_world(), tenant, query, _base()), _request_id())


@app.get("/v1/operations")
def list_operations() -> Response[str]:
    from .web.catalog import operations_view  # noqa: PLC0415

    _tenant(Scope.READ)
    _query()
    # The schemas of parameters may hold floats, as their authors wrote them.
    return raw(HTTPStatus.OK, json.dumps(operations_view(_world())), _request_id())


@app.get("/v1/lanes")
def list_lanes() -> Response[str]:
    from .web.catalog import lanes_view  # noqa: PLC0415

    tenant, _ = _tenant(Scope.READ), _query()
    view = lanes_view(_world(), tenant)
    return answer(HTTPStatus.OK, view, _request_id())


@app.get("/v1/openapi.json")
def openapi() -> Response[str]:
    from .web.openapi_document import served  # noqa: PLC0415

    _tenant(Scope.READ)
    _query()
    text = served(callers().settings, work_settings().limits, _base())
    return raw(HTTPStatus.OK, text, _request_id())


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """One request. Every answer's ``X-Request-Id`` is in the line that is logged about it."""
    started = _world().runtime.now()
    answered = _answered({**event, "path": route_path(event)}, context)
    _world().telemetry.log(
        "request_answered",
        request_id=_request_id(),
        method=event.get("httpMethod"),
        path=event.get("path"),
        principal=callers().principal(event["requestContext"]),
        status=answered["statusCode"],
        ms=_world().runtime.now() - started,
    )
    return answered


def _answered(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """HEAD is GET without the body (RFC 9110, section 9.3.2)."""
    if event.get("httpMethod") == "HEAD":
        return {**app.resolve({**event, "httpMethod": "GET"}, context), "body": ""}
    return app.resolve(event, context)


# --- shared -----------------------------------------------------------------------------------


def _controlled(act: Act, job_id: str) -> Response[str]:
    tenant, _ = _tenant(Scope.WRITE), _query()
    return _done(act, tenant, job_id)


def _done(act: Act, tenant: str, job_id: str) -> Response[str]:
    if not is_job_id(job_id):
        raise _no_job()
    done = act(_world(), tenant, job_id, _by())
    match done:
        case Job():
            return _shown(HTTPStatus.ACCEPTED, done)
        case control.Unchanged(job):
            return _shown(HTTPStatus.OK, job)
        case control.NoSuchJob():
            raise _no_job()
        case Busy():
            raise SubjectBusy(done, _base())
        case TooMany():
            raise no_room(done)
        case control.NotPossible(job, why):
            raise Problem(
                HTTPStatus.CONFLICT,
                "not_possible",
                f"the job is {job.state}: {why}",
                more={"state": job.state.value},
            )


def _shown(status: HTTPStatus, job: Job) -> Response[str]:
    view = job_view(job, _world().runtime.now(), base=_base())
    return answer(status, view, _request_id(), {"Location": view["url"]})


def _job(job_id: str) -> Job:
    """The caller's job. Raises Problem when there is none; another tenant's job is none."""
    tenant = _tenant(Scope.READ)
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


def _tenant(needs: Scope) -> str:
    tenant = callers().tenant(app.current_event.raw_event["requestContext"], needs)
    rate = request_rate()
    wait = None if rate is None else rate.wait_ms(tenant)
    if wait is not None:
        raise throttled(wait)
    return tenant


def _by() -> str:
    return callers().principal(app.current_event.raw_event["requestContext"])


def _base() -> str:
    return base_path(app.current_event.raw_event)


def _query(*known: str) -> Query:
    return Query(app.current_event.raw_event, *known)


def _body() -> str:
    event = app.current_event
    return body_text(event.headers, event.body or "", is_base64=bool(event.is_base64_encoded))


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
    problem = Problem(
        HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the API met an unexpected error"
    )
    return problem.response(_request_id())


def _no_route(_error: Exception) -> Response[str]:
    from .web.methods import no_route  # noqa: PLC0415

    event = app.current_event.raw_event
    return no_route(event["httpMethod"], event["path"]).response(_request_id())


def _log(status: HTTPStatus, detail: str) -> None:
    _world().telemetry.log(
        "request_refused", request_id=_request_id(), status=status.value, why=detail
    )


app.exception_handler(Problem)(_problem)
app.exception_handler(Transient)(_unavailable)
app.exception_handler(Exception)(_internal)
app.not_found(_no_route)

if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    # While the function starts: bad settings stop it here, and the first request need not wait.
    _world()
    callers()
    cold_start.done()

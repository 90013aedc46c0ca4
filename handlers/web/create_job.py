"""``POST /v1/jobs``: the body checked, created once per ``Idempotency-Key``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ..jobs.lifecycle.control import find
from ..jobs.lifecycle.submit import Busy, TooMany, submit
from ..jobs.selection.request import UPLOAD_INSTEAD, BadRequest, accept, parse
from ..jobs.words.exact_json import exact_json, exact_loads
from ..jobs.words.limits import MAX_BODY_BYTES, body_bytes
from ..jobs.words.text_rules import text_problem
from .addresses import location
from .problems import Problem, bad_request, refused
from .views import job_view

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ..jobs.selection.request import Accepted
    from ..jobs.words.job import Job
    from ..jobs.words.ports import World

MAX_KEY_BYTES: Final = 256
ROOM_RETRY: Final = 5
"""Seconds until a tenant with too many jobs may have room for one."""
TEXT: Final = "text"
"""The name of a remembered answer's JSON."""
Answer = dict[str, Any]


class OnConflict(StrEnum):
    """What a client wants when its subject is taken."""

    REJECT = "reject"
    RETURN_EXISTING = "return_existing"


@dataclass(frozen=True)
class Made:
    view: Answer
    replayed: bool = False
    """This answer was given before."""
    existing: bool = False
    """Nothing was made: it is the job that has the subject."""


class SubjectBusy(Problem):
    """409 at once, naming the job that holds the subject."""

    def __init__(self, outcome: Busy, base: str) -> None:
        state = outcome.state.value if outcome.state else "unknown"
        job = {"id": outcome.job_id, "state": state, "url": location(outcome.job_id, base)}
        super().__init__(
            HTTPStatus.CONFLICT,
            "subject_busy",
            f"job {outcome.job_id} ({state}) is working on this subject",
            field="subject",
            more={"active_job": job},
        )
        self.job_id = outcome.job_id


class TooManyJobs(Problem):
    """429: nothing was made, and nothing is left behind."""

    def __init__(self, outcome: TooMany) -> None:
        super().__init__(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too_many_jobs",
            f"{outcome.why}; a new job is possible when one of them has ended",
            retry_after=ROOM_RETRY,
            more={"limit": outcome.limit},
        )


class TenantStopped(Problem):
    """403: sending it again does not help before an operator has raised the limit."""

    def __init__(self, outcome: TooMany) -> None:
        super().__init__(
            HTTPStatus.FORBIDDEN,
            "tenant_stopped",
            f"{outcome.why}; no job is started until an operator raises it",
            more={"limit": outcome.limit},
        )


def no_room(outcome: TooMany) -> Problem:
    return TenantStopped(outcome) if outcome.stopped else TooManyJobs(outcome)


@dataclass(frozen=True)
class Creation:
    """Creates jobs for one deployment."""

    world: World
    idempotency_table: str
    base: str
    """Where the API is for the client, see ``addresses``."""
    by: str
    """The verified caller."""

    def create(
        self,
        tenant: str,
        body: str,
        key: str | None,
        context: LambdaContext,
        on_conflict: OnConflict = OnConflict.REJECT,
    ) -> Made:
        """Raises Problem, Transient."""
        try:
            return self._create(tenant, body, key, context)
        except SubjectBusy as busy:
            if on_conflict is OnConflict.REJECT:
                raise
            holder = find(self.world, tenant, busy.job_id)
            if holder is None or holder.state.terminal:
                raise
            return Made(self._view(holder), existing=True)

    def _create(self, tenant: str, body: str, key: str | None, context: LambdaContext) -> Made:
        accepted = self.accepted(body)
        if key is None:
            return self._submit(tenant, accepted, None)
        if problem := text_problem(key, MAX_KEY_BYTES):
            raise bad_request("Idempotency-Key", problem)
        request = _hash(exact_json(_sorted(parse(body))))
        return self._once(tenant, accepted, key, request, context)

    def accepted(self, body: str) -> Accepted:
        """The checked body. Raises Problem."""
        size = body_bytes(body)
        if size > MAX_BODY_BYTES:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too_large",
                f"the body has {size} bytes, at most {MAX_BODY_BYTES} are allowed; "
                f"{UPLOAD_INSTEAD}",
                field="body",
            )
        try:
            return accept(
                parse(body), self.world.operations, max_ids=self.world.limits.max_inline_ids
            )
        except BadRequest as error:
            raise refused(error) from error

    def _submit(self, tenant: str, accepted: Accepted, idempotency: str | None) -> Made:
        try:
            outcome = submit(
                self.world, tenant, accepted, idempotency=idempotency, created_by=self.by
            )
        except BadRequest as error:
            raise refused(error) from error
        if isinstance(outcome, Busy):
            raise SubjectBusy(outcome, self.base)
        if isinstance(outcome, TooMany):
            raise no_room(outcome)
        return Made(self._view(outcome.job), outcome.replayed)

    def _view(self, job: Job) -> Answer:
        return job_view(job, self.world.runtime.now(), base=self.base)

    def _once(
        self, tenant: str, accepted: Accepted, key: str, request: str, context: LambdaContext
    ) -> Made:
        # Powertools' idempotency is slow to import and most requests send no key.
        from . import idempotency  # noqa: PLC0415

        identity = _hash(f"{len(tenant)}:{tenant}{key}")
        made: list[Made] = []

        def make() -> Answer:
            made.append(self._submit(tenant, accepted, _hash(identity + request)))
            # As text: what remembers answers would make other numbers of a Decimal.
            return {TEXT: exact_json(made[-1].view)}

        remembered = idempotency.run(self.idempotency_table, identity, request, context, make)
        # Answers that an older version gave are remembered as they were.
        view = exact_loads(remembered[TEXT]) if TEXT in remembered else remembered
        # The first request may have come by another address.
        view = {**view, "url": location(view["id"], self.base)}
        return Made(view, replayed=not made or made[-1].replayed)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _sorted(value: Any) -> Any:
    """The same request in whatever key order is the same request."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(part) for part in value]
    return value

"""``POST /v1/jobs``: the body checked, created once per ``Idempotency-Key``."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from ..jobs.exact import exact_json
from ..jobs.names import bad_text
from ..jobs.requests import UPLOAD_INSTEAD, BadRequest, accept, parse
from ..jobs.sizes import BODY, body_bytes
from ..jobs.submit import Busy, submit
from .problems import Problem, bad_request, refused
from .views import job_view, location

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from ..jobs.ports import World
    from ..jobs.requests import Accepted

MAX_KEY_BYTES: Final = 256
Answer = dict[str, Any]


@dataclass(frozen=True)
class Creation:
    """Creates jobs for one deployment."""

    world: World
    idempotency_table: str

    def create(
        self, tenant: str, body: str, key: str | None, context: LambdaContext
    ) -> tuple[Answer, bool]:
        """The new job's view, and whether this answer was given before. Raises Problem,
        Transient."""
        accepted = self.accepted(body)
        if key is None:
            return self._submit(tenant, accepted, None)
        if problem := bad_text(key, MAX_KEY_BYTES):
            raise bad_request("Idempotency-Key", problem)
        request = _hash(exact_json(_sorted(parse(body))))
        return self._once(tenant, accepted, key, request, context)

    def accepted(self, body: str) -> Accepted:
        """The checked body. Raises Problem."""
        size = body_bytes(body)
        if size > BODY:
            raise Problem(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                "too_large",
                f"the body has {size} bytes, at most {BODY} are allowed; {UPLOAD_INSTEAD}",
                field="body",
            )
        try:
            return accept(
                parse(body), self.world.operations, max_ids=self.world.limits.max_inline_ids
            )
        except BadRequest as error:
            raise refused(error) from error

    def _submit(
        self, tenant: str, accepted: Accepted, idempotency: str | None
    ) -> tuple[Answer, bool]:
        try:
            outcome = submit(self.world, tenant, accepted, idempotency=idempotency)
        except BadRequest as error:
            raise refused(error) from error
        if isinstance(outcome, Busy):
            raise busy(outcome)
        return job_view(outcome.job), outcome.replayed

    def _once(
        self, tenant: str, accepted: Accepted, key: str, request: str, context: LambdaContext
    ) -> tuple[Answer, bool]:
        # Powertools' idempotency is slow to import and most requests send no key.
        from . import once  # noqa: PLC0415

        identity = _hash(f"{len(tenant)}:{tenant}{key}")
        calls: list[bool] = []

        def make() -> Answer:
            view, replayed = self._submit(tenant, accepted, _hash(identity + request))
            calls.append(replayed)
            return view

        view = once.run(self.idempotency_table, identity, request, context, make)
        return view, not calls or calls[-1]


def busy(outcome: Busy) -> Problem:
    """409 at once, naming who is in the way."""
    state = outcome.state.value if outcome.state else "unknown"
    return Problem(
        HTTPStatus.CONFLICT,
        "subject_busy",
        f"job {outcome.job_id} ({state}) is working on this subject",
        field="subject",
        more={
            "active_job": {
                "id": outcome.job_id,
                "state": state,
                "url": location(outcome.job_id),
            }
        },
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _sorted(value: Any) -> Any:
    """The same request in whatever key order is the same request."""
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted(part) for part in value]
    return value

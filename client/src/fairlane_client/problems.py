"""Everything that a call can end in besides its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Final


class ClientError(Exception):
    """The call did not bring an answer."""


class Unreachable(ClientError):
    """Nobody answered, or the answer is not this API's. Whether a job was created is unknown."""


class NotConnected(Unreachable):
    """There was no connection, so nothing was sent."""


class StillRunning(ClientError):
    """A wait ran out of time; the job goes on."""


class NotDownloaded(ClientError):
    """A report was made, but could not be brought here; nothing of it was kept."""


class FileTooLarge(ClientError):
    """The file is larger than the API takes; nothing was sent."""


class BadAddress(ClientError, ValueError):
    """The API's address or the token cannot be used; nothing was sent."""


class InexactNumber(ClientError, TypeError):
    """A request holds a value that has no exact JSON, such as a float; nothing was sent. The
    message names the field."""


@dataclasses.dataclass(frozen=True)
class FieldProblem:
    """One thing that is wrong with a body."""

    pointer: str
    """A JSON Pointer (RFC 6901) as a fragment, such as ``#/ids/3``."""
    field: str
    """The same place as people write it, such as ``ids[3]``."""
    detail: str


@dataclasses.dataclass
class ApiProblem(ClientError):
    """The API refused (RFC 9457). Each code has a type of its own in ``PROBLEMS``."""

    status: int
    code: str
    """Stable; a code that is newer than this client has the type ApiProblem."""
    detail: str
    field: str | None = None
    """Where the request is wrong, such as ``ids[3]``."""
    retry_after: float | None = None
    """Seconds."""
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The whole problem document, with the fields that only this code has."""

    codes: ClassVar[tuple[str, ...]] = ()

    def __str__(self) -> str:
        where = f" ({self.field})" if self.field else ""
        more = "".join(f"\n{each.field}: {each.detail}" for each in self.errors[1:])
        return f"{self.code}{where}: {self.detail}{more}"

    @property
    def request_id(self) -> str | None:
        """What operators find the request by."""
        return _text(self.body.get("request_id"))

    @property
    def active_job_id(self) -> str | None:
        """Of ``subject_busy``: the job that has the subject."""
        holder = self.body.get("active_job")
        return _text(holder.get("id")) if isinstance(holder, Mapping) else None

    @property
    def state(self) -> str | None:
        """Of ``not_possible``: the job's state."""
        return _text(self.body.get("state"))

    @property
    def limit(self) -> int | None:
        """Of ``too_many_jobs``, ``tenant_stopped`` and ``too_many_uploads``: the tenant's."""
        limit = self.body.get("limit")
        return limit if isinstance(limit, int) else None

    @property
    def scope(self) -> str | None:
        """Of ``insufficient_scope``: the scope that the token lacks."""
        return _text(self.body.get("scope"))

    @property
    def errors(self) -> tuple[FieldProblem, ...]:
        """Everything that is wrong with a body; the first of them is in ``detail``."""
        listed = self.body.get("errors")
        return tuple(
            FieldProblem(**{name: str(each.get(name, "")) for name in FieldProblem.__annotations__})
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, Mapping)
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """The record fields that the problem is about."""
        names = self.body.get("fields")
        return tuple(map(str, names)) if isinstance(names, list) else ()


class BadRequest(ApiProblem):
    codes = ("bad_request",)


class NotAllowed(ApiProblem):
    """The token is missing, expired or not enough."""


class Unauthorized(NotAllowed):
    codes = ("unauthorized",)


class InsufficientScope(NotAllowed):
    codes = ("insufficient_scope",)


class UnknownPrincipal(NotAllowed):
    codes = ("unknown_principal",)


class Forbidden(NotAllowed):
    codes = ("forbidden",)


class NotFound(ApiProblem):
    codes = ("not_found",)


class MethodNotAllowed(ApiProblem):
    codes = ("method_not_allowed",)


class UnsupportedMediaType(ApiProblem):
    """The API takes JSON in UTF-8, not compressed."""

    codes = ("unsupported_media_type",)


class SubjectBusy(ApiProblem):
    """Another job has the subject: ``active_job_id``."""

    codes = ("subject_busy",)


class NotPossible(ApiProblem):
    """Not in the job's present ``state``."""

    codes = ("not_possible",)


class TooManyJobs(ApiProblem):
    """The tenant has as many active jobs as it may: ``limit``."""

    codes = ("too_many_jobs",)


class TenantStopped(ApiProblem):
    """An operator has stopped the tenant: none of its jobs is accepted until that is undone."""

    codes = ("tenant_stopped",)


class TooManyUploads(ApiProblem):
    """The tenant has as many upload addresses as it may: ``limit``."""

    codes = ("too_many_uploads",)


class InProgress(ApiProblem):
    """A request with the same Idempotency-Key is still being answered."""

    codes = ("in_progress",)


class TooLarge(ApiProblem):
    """The request has more bytes or ids than a request may: upload a file."""

    codes = ("too_large",)


class Unprocessable(ApiProblem):
    codes = ("unprocessable",)


class IdempotencyKeyReused(ApiProblem):
    """The Idempotency-Key was used for a different request before."""

    codes = ("idempotency_key_reused",)


class ReportTooLarge(ApiProblem):
    codes = ("report_too_large",)


class RetryTooLarge(ApiProblem):
    codes = ("retry_too_large",)


class Internal(ApiProblem):
    codes = ("internal",)


class Unavailable(ApiProblem):
    """A dependency of the API did not answer; nothing was changed."""

    codes = ("unavailable",)


class Unsettled(ApiProblem):
    """It may or may not have been done."""

    codes = ("unsettled",)


class Throttled(ApiProblem):
    """Too many requests, of the tenant or of all; this one did nothing."""

    codes = ("throttled", "too_many_requests")


class Refused(ApiProblem):
    """The web firewall took the request for an attack."""

    codes = ("refused",)


class GatewayTimeout(ApiProblem):
    """The API took too long. Whether it was done is unknown."""

    codes = ("gateway_timeout",)


def _kinds(above: type[ApiProblem]) -> dict[str, type[ApiProblem]]:
    found = dict.fromkeys(above.codes, above)
    for kind in above.__subclasses__():
        found |= _kinds(kind)
    return found


PROBLEMS: Final[Mapping[str, type[ApiProblem]]] = _kinds(ApiProblem)
"""Every code of the API's document, and its type."""
NO_ENTRY: Final = frozenset({401, 403})


def problem_of(status: int, body: object, retry_after: str | None) -> ApiProblem:
    """The problem in an answer; also in one that did not come from Fairlane (a gateway's
    ``{"message": ...}``, a proxy's page)."""
    document = body if isinstance(body, Mapping) else {}
    code = _text(document.get("code")) or f"http_{status}"
    kind = PROBLEMS.get(code, NotAllowed if status in NO_ENTRY else ApiProblem)
    detail = _text(document.get("detail", document.get("message")))
    return kind(
        status=status,
        code=code,
        detail=f"the answer has status {status}" if detail is None else detail,
        field=_text(document.get("field")),
        retry_after=_seconds(retry_after),
        body=document,
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None

"""What a call can end in besides its answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


class ClientError(Exception):
    """The call did not bring an answer."""


class Unreachable(ClientError):
    """Nobody answered, or what answered is not this API. Whether a job was created is unknown."""


class StillRunning(ClientError):
    """A wait ran out of time; the job goes on."""


class NotDownloaded(ClientError):
    """A report was made, but could not be brought here; nothing of it was kept."""


@dataclasses.dataclass
class ApiProblem(ClientError):
    """The API refused (RFC 9457). ``code`` is stable; switch on it."""

    status: int
    code: str
    detail: str
    field: str | None = None
    """Where the request is wrong, such as ``ids[3]``."""
    retry_after: float | None = None
    """Seconds."""
    body: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """The whole problem document, with what this code adds to it."""

    def __str__(self) -> str:
        where = f" ({self.field})" if self.field else ""
        return f"{self.code}{where}: {self.detail}"

    @property
    def active_job_id(self) -> str | None:
        """Of ``subject_busy``: the job that has the subject."""
        holder = self.body.get("active_job")
        return holder.get("id") if isinstance(holder, Mapping) else None


def problem_of(status: int, body: object, retry_after: str | None) -> ApiProblem:
    """The problem in an answer; also in one that did not come from Fairlane (a gateway's
    ``{"message": ...}``, a proxy's page)."""
    document = body if isinstance(body, Mapping) else {}
    code = document.get("code")
    detail = document.get("detail", document.get("message"))
    where = document.get("field")
    return ApiProblem(
        status=status,
        code=code if isinstance(code, str) else f"http_{status}",
        detail=detail if isinstance(detail, str) else f"the answer has status {status}",
        field=where if isinstance(where, str) else None,
        retry_after=_seconds(retry_after),
        body=document,
    )


def _seconds(header: str | None) -> float | None:
    return float(header) if header and header.isascii() and header.isdigit() else None

"""The calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from urllib.parse import quote, urlencode

from .models import (
    ItemPage,
    ItemView,
    JobPage,
    JobPreview,
    JobView,
    Lanes,
    LaneView,
    Operations,
    OperationView,
    ReportView,
    SubjectView,
    UploadAddress,
)
from .requests import NewJob, NewUpload
from .transport import Call, Token, Transport
from .uploads import send
from .waiting import watch

POLL_S: Final = 0.5
MAX_PAGE: Final = 200
NOTHING_MADE: Final = 200
"""Of a submission: a job that was created is 202."""


class Client:
    """Fairlane's API at ``url`` (with its stage), called as the tenant of ``token``.

    token: a text, or a callable that makes one; the callable is asked again when a token is
    refused. A ``Signer`` where the deployment takes signatures. Every method raises ApiProblem and
    Unreachable. Safe to share between threads.
    """

    def __init__(
        self,
        url: str,
        token: Token,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Raises BadAddress: https, unless the address is this machine's."""
        self._transport = Transport(url, token, now=now, sleep=sleep)

    @property
    def url(self) -> str:
        return self._transport.url

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    # --- new jobs ----------------------------------------------------------------------------

    def submit(
        self, job: NewJob, *, idempotency_key: str | None = None, on_conflict: str | None = None
    ) -> JobView:
        """Create a job. With a key, sending the same again brings the first answer again; this
        method does so by itself when an answer is lost.
        on_conflict: ``return_existing`` for the job that has the subject (``existing``) instead of
        a problem."""
        keyed = idempotency_key is not None
        call = Call(
            "POST",
            _path("/v1/jobs", [("on_conflict", on_conflict)]),
            job.json_body(),
            {"Idempotency-Key": idempotency_key} if idempotency_key is not None else {},
            repeatable=keyed,
        )
        status, view = self._transport.ask(JobView, call)
        return view.model_copy(update={"existing": True}) if status == NOTHING_MADE else view

    def preview(self, job: NewJob) -> JobPreview:
        """What creating it would do; nothing is created."""
        path = _path("/v1/jobs", [("validate_only", "true")])
        call = Call("POST", path, job.json_body(), repeatable=True)
        return self._transport.ask(JobPreview, call)[1]

    def upload_address(self, upload: NewUpload) -> UploadAddress:
        """Where a file may be sent; ``upload`` sends one."""
        call = Call("POST", "/v1/uploads", upload.json_body(), repeatable=True)
        return self._transport.ask(UploadAddress, call)[1]

    def upload(
        self, path: Path, upload: NewUpload, *, sent: Callable[[int], None] = lambda _: None
    ) -> str:
        """Send a file; returns the ``upload_id`` to create a job with. sent: told of the bytes of
        each piece. Raises FileTooLarge and OSError, too."""
        address = self.upload_address(upload)
        send(address, path, sent=sent)
        return address.upload_id

    # --- jobs --------------------------------------------------------------------------------

    def get(self, job_id: str) -> JobView:
        return self._transport.ask(JobView, Call("GET", _job(job_id), repeatable=True))[1]

    def page(
        self,
        *,
        limit: int = 50,
        page: str | None = None,
        state: Iterable[str] = (),
        operation: str | None = None,
        subject: str | None = None,
        label: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> JobPage:
        """One page of the tenant's jobs, newest first; it may be short or empty while there is a
        ``next``. The filters are those of ``jobs``."""
        query = [
            ("limit", str(limit)),
            ("page", page),
            *(("state", str(each)) for each in state),
            ("operation", operation),
            ("subject", subject),
            *(("label", f"{name}:{value}") for name, value in (label or {}).items()),
            ("created_after", _time(created_after)),
            ("created_before", _time(created_before)),
        ]
        call = Call("GET", _path("/v1/jobs", query), repeatable=True)
        return self._transport.ask(JobPage, call)[1]

    def jobs(
        self,
        limit: int | None = None,
        *,
        state: Iterable[str] = (),
        operation: str | None = None,
        subject: str | None = None,
        label: Mapping[str, str] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
    ) -> Iterator[JobView]:
        """The tenant's jobs, newest first, over as many pages as it takes.

        limit: at most so many. state: in one of these. label: with all of these. created_after:
        then or later; created_before: before then; both with a time zone.
        """
        states = tuple(state)
        token: str | None = None
        while limit is None or limit > 0:
            page = self.page(
                limit=MAX_PAGE if limit is None else min(limit, MAX_PAGE),
                page=token,
                state=states,
                operation=operation,
                subject=subject,
                label=label,
                created_after=created_after,
                created_before=created_before,
            )
            yield from page.jobs[:limit]
            limit = None if limit is None else limit - len(page.jobs)
            token = page.next
            if token is None:
                return

    def subject(self, name: str) -> SubjectView:
        """Which job holds the subject now."""
        call = Call("GET", _path("/v1/subjects", [("name", name)]), repeatable=True)
        return self._transport.ask(SubjectView, call)[1]

    def cancel(self, job_id: str) -> JobView:
        return self._control(job_id, "cancel", repeatable=True)

    def pause(self, job_id: str) -> JobView:
        return self._control(job_id, "pause", repeatable=True)

    def resume(self, job_id: str) -> JobView:
        return self._control(job_id, "resume")

    def retry(self, job_id: str, *, failed_only: bool = False) -> JobView:
        """Let a failed job go on. failed_only: a new job over the failed records of an ended one;
        asked again, the same job."""
        query = [("failed_only", "true")] if failed_only else []
        return self._control(job_id, "retry", query, repeatable=failed_only)

    def replay_effects(self, job_id: str) -> JobView:
        """Try the job's parked effects again."""
        return self._control(job_id, "effects/replay")

    # --- results -----------------------------------------------------------------------------

    def item_page(
        self, job_id: str, outcome: str, *, limit: int | None = None, page: str | None = None
    ) -> ItemPage:
        """One page of ``items``."""
        query = [
            ("outcome", outcome),
            ("limit", None if limit is None else str(limit)),
            ("page", page),
        ]
        call = Call("GET", _path(f"{_job(job_id)}/items", query), repeatable=True)
        return self._transport.ask(ItemPage, call)[1]

    def items(self, job_id: str, outcome: str, *, limit: int | None = None) -> Iterator[ItemView]:
        """The job's ``failed``, ``skipped`` or ``refused`` records, over as many pages as it
        takes. limit: of one page."""
        token: str | None = None
        while True:
            page = self.item_page(job_id, outcome, limit=limit, page=token)
            yield from page.items
            token = page.next
            if token is None:
                return

    def report(self, job_id: str, *, form: str = "csv", outcome: str = "all") -> ReportView:
        """Where a file of those records can be downloaded for some minutes. form: ``csv`` or
        ``jsonl``."""
        path = _path(f"{_job(job_id)}/report", [("format", form), ("outcome", outcome)])
        return self._transport.ask(ReportView, Call("POST", path, repeatable=True))[1]

    # --- the deployment ----------------------------------------------------------------------

    def operations(self) -> tuple[OperationView, ...]:
        """What jobs can do to records."""
        call = Call("GET", "/v1/operations", repeatable=True)
        return self._transport.ask(Operations, call)[1].operations

    def lanes(self) -> tuple[LaneView, ...]:
        call = Call("GET", "/v1/lanes", repeatable=True)
        return self._transport.ask(Lanes, call)[1].lanes

    def openapi(self) -> Mapping[str, object]:
        """The deployment's own OpenAPI document."""
        reply = self._transport.send(Call("GET", "/v1/openapi.json", repeatable=True))
        document: Mapping[str, object] = reply.content
        return document

    # --- waiting -----------------------------------------------------------------------------

    def watch(
        self, job_id: str, *, poll: float = POLL_S, timeout: float | None = None
    ) -> Iterator[JobView]:
        """The job again and again, every ``poll`` seconds, until it has ended; that view is the
        last. Raises StillRunning after ``timeout`` seconds (None: never).

        While the API gives no answer (or 429, 5xx) it is asked again, for a quarter of the
        time-out but at least 30 seconds, and for ten minutes without one; then that error is
        raised.
        """
        transport = self._transport
        return watch(lambda: self.get(job_id), transport.now, transport.sleep, poll, timeout)

    def wait(self, job_id: str, *, poll: float = POLL_S, timeout: float | None = None) -> JobView:
        """The job when it has ended. Raises StillRunning after ``timeout`` seconds; see ``watch``
        for an API that does not answer meanwhile."""
        *_, last = self.watch(job_id, poll=poll, timeout=timeout)
        return last

    # --- inside ------------------------------------------------------------------------------

    def _control(
        self,
        job_id: str,
        verb: str,
        query: Iterable[tuple[str, str | None]] = (),
        *,
        repeatable: bool = False,
    ) -> JobView:
        call = Call("POST", _path(f"{_job(job_id)}/{verb}", query), repeatable=repeatable)
        return self._transport.ask(JobView, call)[1]


def _job(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _path(path: str, query: Iterable[tuple[str, str | None]]) -> str:
    given = [(name, value) for name, value in query if value is not None]
    return f"{path}?{urlencode(given)}" if given else path


def _time(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return moment.isoformat()

"""The calls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import urllib3
from pydantic import BaseModel, ValidationError
from urllib3.util.retry import Retry

from .models import (
    ItemPage,
    ItemView,
    JobPage,
    JobPreview,
    JobView,
    Lanes,
    LaneView,
    NewJob,
    ReportView,
)
from .problems import StillRunning, Unreachable, problem_of
from .uploads import NewUpload, UploadAddress, send

Model = TypeVar("Model", bound=BaseModel)

TIMEOUT_S: Final = 60.0
POLL_S: Final = 0.5
MAX_PAGE: Final = 200
PREVIEW: Final = "validate_only=true"
TRIES_AGAIN: Final = 3
BACKOFF: Final = 0.2
"""Seconds, doubled with every try; a Retry-After goes before it."""
TOO_MANY: Final = 429
UNAVAILABLE: Final = 503
FIRST_ERROR: Final = 400
NOTHING_MADE: Final = 200
"""Of a submission: a job that was created is 202."""


class _OfThrottled(Retry):
    # By default a 503 with a Retry-After is sent again too, whatever the method.
    RETRY_AFTER_STATUS_CODES = frozenset({TOO_MANY})


ASKING: Final = Retry(
    total=TRIES_AGAIN,
    redirect=0,
    status_forcelist=(TOO_MANY, UNAVAILABLE),
    backoff_factor=BACKOFF,
    raise_on_status=False,
)
ORDERING: Final = _OfThrottled(
    total=TRIES_AGAIN,
    read=0,
    other=0,
    redirect=0,
    status_forcelist=(TOO_MANY,),
    allowed_methods=None,
    backoff_factor=BACKOFF,
    raise_on_status=False,
)
"""A throttled request never reached Fairlane. What became of any other is for the caller to find
out: sent again it could meet its own job in the way."""


class Client:
    """Fairlane's API at ``url`` (with its stage), called as the tenant of ``token``.

    Every method raises ApiProblem and Unreachable. Safe to share between threads.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url.rstrip("/")
        self._token = token
        self._now = now
        self._sleep = sleep
        self._pool = urllib3.PoolManager(maxsize=8, timeout=TIMEOUT_S)

    def submit(
        self, job: NewJob, *, idempotency_key: str | None = None, on_conflict: str | None = None
    ) -> JobView:
        """Create a job. With a key, sending the same again brings the first answer again.
        on_conflict: ``return_existing`` for the job that has the subject (``existing``) instead of
        a problem."""
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        query = "" if on_conflict is None else f"?{urlencode({'on_conflict': on_conflict})}"
        body = job.json_body()
        status, view = self._answer(JobView, "POST", f"/v1/jobs{query}", body=body, headers=headers)
        return view.model_copy(update={"existing": True}) if status == NOTHING_MADE else view

    def preview(self, job: NewJob) -> JobPreview:
        """What creating it would do; nothing is created."""
        return self._call(JobPreview, "POST", f"/v1/jobs?{PREVIEW}", body=job.json_body())

    def upload(self, path: Path, upload: NewUpload, *, sent: Callable[[int], None]) -> str:
        """Send a file; returns the ``upload_id`` to create a job with. sent: told of the bytes of
        each piece. Raises TooLarge and OSError, too."""
        address = self._call(UploadAddress, "POST", "/v1/uploads", body=upload.json_body())
        send(address, path, sent=sent)
        return address.upload_id

    def get(self, job_id: str) -> JobView:
        return self._call(JobView, "GET", _path(job_id))

    def page(self, *, limit: int = 50, token: str | None = None) -> JobPage:
        """One page of the tenant's jobs, newest first."""
        query = urlencode({"limit": limit, **({} if token is None else {"page": token})})
        return self._call(JobPage, "GET", f"/v1/jobs?{query}")

    def jobs(self, limit: int) -> Iterator[JobView]:
        """The tenant's newest jobs, at most ``limit``, over as many pages as it takes."""
        token: str | None = None
        while limit > 0:
            page = self.page(limit=min(limit, MAX_PAGE), token=token)
            yield from page.jobs[:limit]
            limit -= len(page.jobs)
            token = page.next
            if token is None:
                return

    def lanes(self) -> tuple[LaneView, ...]:
        return self._call(Lanes, "GET", "/v1/lanes").lanes

    def cancel(self, job_id: str) -> JobView:
        return self._control(job_id, "cancel")

    def pause(self, job_id: str) -> JobView:
        return self._control(job_id, "pause")

    def resume(self, job_id: str) -> JobView:
        return self._control(job_id, "resume")

    def retry(self, job_id: str, *, failed_only: bool = False) -> JobView:
        """Let a failed job go on. failed_only: a new job over the failed records of an ended one;
        asked again, the same job."""
        return self._control(job_id, "retry?failed_only=true" if failed_only else "retry")

    def items(self, job_id: str, outcome: str, *, limit: int | None = None) -> Iterator[ItemView]:
        """The job's ``failed``, ``skipped`` or ``refused`` records, over as many pages as it
        takes. limit: of one page."""
        token: str | None = None
        while True:
            asked = {"outcome": outcome, "limit": limit, "page": token}
            query = urlencode({name: value for name, value in asked.items() if value is not None})
            page = self._call(ItemPage, "GET", f"{_path(job_id)}/items?{query}")
            yield from page.items
            token = page.next
            if token is None:
                return

    def report(self, job_id: str, *, form: str = "csv", outcome: str = "all") -> ReportView:
        """Where a file of those records can be downloaded for some minutes. form: ``csv`` or
        ``jsonl``."""
        query = urlencode({"format": form, "outcome": outcome})
        return self._call(ReportView, "POST", f"{_path(job_id)}/report?{query}")

    def watch(
        self, job_id: str, *, poll: float = POLL_S, timeout: float | None = None
    ) -> Iterator[JobView]:
        """The job again and again, every ``poll`` seconds, until it has ended; that view is the
        last. Raises StillRunning after ``timeout`` seconds (None: never)."""
        deadline = None if timeout is None else self._now() + timeout
        while True:
            job = self.get(job_id)
            yield job
            if job.state.terminal:
                return
            if deadline is not None and self._now() + poll > deadline:
                raise StillRunning(f"job {job.id} is {job.state} after {timeout:g} s")
            self._sleep(poll)

    def wait(self, job_id: str, *, poll: float = POLL_S, timeout: float | None = None) -> JobView:
        """The job when it has ended. Raises StillRunning after ``timeout`` seconds."""
        *_, last = self.watch(job_id, poll=poll, timeout=timeout)
        return last

    def close(self) -> None:
        self._pool.clear()

    # --- inside ------------------------------------------------------------------------------

    def _control(self, job_id: str, verb: str) -> JobView:
        return self._call(JobView, "POST", f"{_path(job_id)}/{verb}")

    def _call(
        self,
        kind: type[Model],
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Model:
        return self._answer(kind, method, path, body=body, headers=headers)[1]

    def _answer(
        self,
        kind: type[Model],
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, Model]:
        """The status and what was said."""
        try:
            reply = self._pool.request(
                method,
                self.url + path,
                body=body,
                headers={
                    "authorization": f"Bearer {self._token}",
                    "content-type": "application/json",
                    **(headers or {}),
                },
                retries=ASKING if method == "GET" else ORDERING,
            )
        except urllib3.exceptions.HTTPError as error:
            raise Unreachable(f"the API at {self.url} did not answer: {error}") from error
        content = _decoded(reply.data)
        if reply.status >= FIRST_ERROR:
            raise problem_of(reply.status, content, reply.headers.get("Retry-After"))
        try:
            return reply.status, kind.model_validate(content)
        except ValidationError as error:
            raise Unreachable(f"{self.url} does not answer like Fairlane's API: {error}") from error


def _path(job_id: str) -> str:
    return f"/v1/jobs/{quote(job_id, safe='')}"


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None

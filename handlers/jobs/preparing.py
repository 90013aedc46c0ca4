"""Writing down the ids of an uploaded file or a snapshot, before the first record is changed.

The list is written whole under a name of this attempt's own, and one transaction makes it the
job's. An interruption leaves an object nobody knows, which the bucket's lifecycle removes; the
next attempt starts again. So a job never walks half of its input, nor somebody else's list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from . import transactions
from .distinct import Distinct
from .errors import JobFailed, OwnershipLost, Transient, UploadGone
from .limits import PAYLOAD_BLOCK, QUERY_PAGE
from .model import EndReason
from .reading import read_job
from .settle import Rejected, carry_out, insist
from .sources import filter_of, lines, query_port
from .transactions import LEASE
from .uploads import BadUpload, ids_of
from .walked import Stopped, Walked, still_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .model import Job
    from .outcomes import Stop
    from .ports import UploadStore, World
    from .uploads import Upload

LOOK_EVERY: Final = 5000
"""Ids between two looks at whether to stop."""


def prepare(world: World, job: Job, should_stop: Callable[[Job], Stop | None]) -> Walked:
    """The job with its id list, or why it stopped before it had one.

    Raises OwnershipLost, Transient, JobFailed (a bad line, a file that is gone, a bad query).
    """
    return _Preparation(world, job, should_stop).run()


@dataclass(frozen=True)
class _Preparation:
    world: World
    job: Job
    should_stop: Callable[[Job], Stop | None]

    def run(self) -> Walked:
        started = self.world.runtime.now()
        # The fence makes the name this attempt's: a replaced worker can't change what is walked.
        name = f"ids/{self.job.id}-{self.job.fence}"
        ids = Distinct(self._watched(self._found()))
        try:
            size = self.world.payloads.put(name, lines(ids))
        except Stopped as stopped:
            return stopped.walked
        except BadUpload as error:
            raise JobFailed(EndReason.BAD_UPLOAD, str(error)) from error
        prepared = self.job.model_copy(
            update={"payload": name, "total": ids.total, "duplicates": ids.duplicates}
        )
        try:
            self._keep(prepared, name)
        except Stopped as stopped:
            self._drop(name)
            return stopped.walked
        except OwnershipLost:
            self._drop(name)
            raise
        self._log(
            "list_written",
            total=ids.total,
            duplicates=ids.duplicates,
            bytes=size,
            ms=self.world.runtime.now() - started,
        )
        return Walked(prepared, None)

    # --- the ids ------------------------------------------------------------------------------

    def _found(self) -> Iterator[str]:
        if self.job.upload is not None:
            return upload_ids(self.world, self.job.upload, self._look)
        return self._queried(self.job.query or "")

    def _queried(self, query: str) -> Iterator[str]:
        port, filter_ = query_port(self.world), filter_of(query)
        cursor: str | None = None
        while True:
            self._look()
            page = insist(
                self.world, partial(port.page, self.job.tenant, filter_, cursor, QUERY_PAGE)
            )
            for found in page.found:
                yield found.id
            if page.next is None:
                return
            cursor = page.next

    def _watched(self, ids: Iterator[str]) -> Iterator[str]:
        for number, id_ in enumerate(ids, start=1):
            if number % LOOK_EVERY == 0:
                self._look()
            yield id_

    # --- stopping -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Raises Stopped, OwnershipLost."""
        if stop := self.should_stop(self.job):
            raise Stopped(self.job, stop)
        still_running(self.world, self.job)

    def _keep(self, prepared: Job, name: str) -> None:
        transaction = transactions.list_written(
            self.job, payload=name, total=prepared.total or 0, duplicates=prepared.duplicates
        )

        def applied() -> bool:
            now = read_job(self.world, self.job.id)
            return now is not None and now.payload == name

        try:
            carry_out(self.world, transaction, applied)
        except Rejected as rejected:
            if LEASE in rejected.reasons:
                raise OwnershipLost from rejected
            still_running(self.world, self.job)
            raise OwnershipLost from rejected

    def _drop(self, name: str) -> None:
        """Best effort: the bucket's lifecycle removes what is left."""
        try:
            self.world.payloads.delete(name)
        except Transient as error:
            self._log("list_left", why=str(error))

    def _log(self, action: str, **fields: object) -> None:
        self.world.telemetry.log(
            action, job_id=self.job.id, tenant=self.job.tenant, fence=self.job.fence, **fields
        )


def upload_ids(
    world: World, upload: Upload, look: Callable[[], None] = lambda: None
) -> Iterator[str]:
    """The ids in an uploaded file, repeats included.

    look: called before each block. Raises BadUpload, JobFailed (it is gone), Transient.
    """
    return ids_of(_blocks(world, upload, look), upload, max_bytes=world.limits.max_expanded_bytes)


def _blocks(world: World, upload: Upload, look: Callable[[], None]) -> Iterator[bytes]:
    uploads = _upload_store(world)
    for offset in range(0, upload.size, PAYLOAD_BLOCK):
        look()
        yield insist(world, partial(_read, uploads, upload, offset))


def _upload_store(world: World) -> UploadStore:
    if world.uploads is None:
        raise JobFailed(EndReason.UPLOAD_GONE, "this deployment takes no uploads")
    return world.uploads


def _read(uploads: UploadStore, upload: Upload, offset: int) -> bytes:
    try:
        block = uploads.read(upload.name, upload.version, offset, PAYLOAD_BLOCK)
    except UploadGone as error:
        raise JobFailed(EndReason.UPLOAD_GONE, str(error)) from error
    if len(block) != min(PAYLOAD_BLOCK, upload.size - offset):
        raise Transient(f"{len(block)} bytes of the upload from {offset}")
    return block

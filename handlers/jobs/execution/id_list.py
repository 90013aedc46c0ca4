"""Writing down the ids of an uploaded file or a snapshot, before the first record is changed.

The list is written whole under a name of this attempt's own, and one transaction makes it the
job's. An interruption leaves an object that no job names, which the bucket's lifecycle removes; the
next attempt starts again. So a job never walks half of its input, nor another attempt's list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from ..selection.id_sources import filter_of, lines, query_port, upload_ids
from ..selection.permuted import distinct
from ..selection.upload_parser import BadUpload
from ..storage.transaction import Rejected, execute, retry_transient
from ..transitions.chunk_commit import id_list_written
from ..transitions.conditions import LEASE
from ..words.errors import JobFailed, OwnershipLost, Transient
from ..words.job import EndReason
from ..words.limits import QUERY_PAGE
from .stopping import LoopEnd, StopRequested, still_running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..words.job import Job
    from ..words.ports import World
    from .stopping import StopReason

CHECK_EVERY: Final = 5000
"""Ids between two checks whether to stop."""


def write_id_list(
    world: World, job: Job, should_stop: Callable[[Job], StopReason | None]
) -> LoopEnd:
    """Write the job's id list. Returns the job with it, or why the attempt stopped before.

    Raises OwnershipLost, Transient, JobFailed (a bad line, a file that is gone, a bad query).
    """
    return _IdListWriter(world, job, should_stop).run()


@dataclass(frozen=True)
class _IdListWriter:
    world: World
    job: Job
    should_stop: Callable[[Job], StopReason | None]

    def run(self) -> LoopEnd:
        started = self.world.runtime.now()
        # The fence makes the name this attempt's: a replaced worker can't change what is walked.
        name = f"ids/{self.job.id}-{self.job.fence}"
        ids = distinct(self._ids(), self.job.id, permute=self.world.limits.permute_ids)
        try:
            size = self.world.payloads.put(name, lines(self._checking_stop(ids)))
        except StopRequested as stopped:
            return stopped.loop_end
        except BadUpload as error:
            raise JobFailed(EndReason.BAD_UPLOAD, str(error)) from error
        try:
            prepared = self._commit(name, ids.total, ids.duplicates)
        except StopRequested as stopped:
            self._drop(name)
            return stopped.loop_end
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
        return LoopEnd(prepared, None)

    # --- the ids ------------------------------------------------------------------------------

    def _ids(self) -> Iterator[str]:
        if self.job.upload is not None:
            return upload_ids(self.world, self.job.upload, self._check_stop)
        return self._checking_stop(self._query_ids(self.job.query or ""))

    def _query_ids(self, query: str) -> Iterator[str]:
        port, filter_ = query_port(self.world), filter_of(query)
        cursor: str | None = None
        while True:
            self._check_stop()
            page = retry_transient(
                self.world, partial(port.page, self.job.tenant, filter_, cursor, QUERY_PAGE)
            )
            for found in page.found:
                yield found.id
            if page.next is None:
                return
            cursor = page.next

    def _checking_stop(self, ids: Iterable[str]) -> Iterator[str]:
        for number, id_ in enumerate(ids, start=1):
            if number % CHECK_EVERY == 0:
                self._check_stop()
            yield id_

    # --- stopping -----------------------------------------------------------------------------

    def _check_stop(self) -> None:
        """Raises StopRequested, OwnershipLost."""
        if stop := self.should_stop(self.job):
            raise StopRequested(self.job, stop)
        still_running(self.world, self.job)

    def _commit(self, name: str, total: int, duplicates: int) -> Job:
        written = id_list_written(
            self.world, self.job, payload=name, total=total, duplicates=duplicates
        )
        try:
            execute(self.world, written.transaction)
        except Rejected as rejected:
            if LEASE in rejected.reasons:
                raise OwnershipLost from rejected
            still_running(self.world, self.job)
            raise OwnershipLost from rejected
        return written.after

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

"""Jobs of the check's own, through the API: both lanes, an upload, a report, a cancel, a redrive.

Their ids name no records, so nothing is changed; with ``own_records`` they name records that the
check puts into the table and that a job deletes again.
"""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from fairlane_client import (
    ApiProblem,
    Client,
    ClientError,
    JobView,
    NewJob,
    NewUpload,
    State,
    fetch,
)
from handlers.jobs.lifecycle.dead_letters import Fate, Letter, redrive
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.errors import ReceiptExpired
from handlers.jobs.words.job import OPERATOR, EndReason, Job
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.ports import LaneQueue
from handlers.jobs.words.writes import Delete, Key, Put, Table
from scripts.local.errors import LocalError
from scripts.ops.deployment import Deployment
from scripts.ops.letters import letters_of, show_again
from scripts.ops.operator_log import noted

from .rows import Row, judged, told, unchecked

NAME: Final = "fairlane-aws-check"
"""Subjects, ids and the label of its jobs begin with it."""
FEW: Final = 3
"""Records of a small job."""
FIELD: Final = "fairlane_aws_check"
TRIES: Final = 3
POLL_S: Final = 1.0
SMALL, BULK, UPLOAD = "a small job", "a bulk job", "an upload"
REPORT, CANCEL, REDRIVE, CHANGE = "a report link", "a cancel", "a redrive", "records are changed"
CLEAN: Final = "nothing is left behind"


@dataclass
class Trial:
    client: Client
    here: Deployment
    patience: float
    """Seconds for one job to end."""
    items: int
    """Ids of a bulk job; raised to what the bulk lane begins with."""
    rows: list[Row] = field(default_factory=list)
    run: str = field(default_factory=lambda: secrets.token_hex(4))
    """In every subject and id, so that two runs do not meet."""
    made: list[str] = field(default_factory=list)
    """Ids of its jobs."""
    letters: set[str] = field(default_factory=set)
    """Ids of those of which a dead letter may be there."""

    def __post_init__(self) -> None:
        self.items = max(self.items, self.here.settings.limits.small_max_items + 1)

    # --- each thing ---------------------------------------------------------------------------

    def small(self) -> None:
        with told(SMALL, self.rows):
            self._none_changed(SMALL, self._ended("small", ids=self._ids(FEW)), "small", FEW)

    def bulk(self, look: Callable[[], None] = lambda: None) -> None:
        """The ids come in an uploaded file; its skipped records make the report. look: called
        again and again while the job runs."""
        with told(UPLOAD, self.rows):
            upload_id = self._uploaded(self._ids(self.items))
            with told(BULK, self.rows):
                job = self._submit("bulk", upload_id=upload_id)
                for view in self.client.watch(job.id, poll=POLL_S, timeout=self.patience):
                    look()
                    job = view
                self._none_changed(BULK, job, "bulk", self.items)
                self._report(job)

    def cancel(self) -> None:
        with told(CANCEL, self.rows):
            for number in range(TRIES):
                job = self._submit(f"cancel-{number}", ids=self._ids(self.items))
                try:
                    self.client.cancel(job.id)
                except ApiProblem as error:
                    if error.state is None:
                        raise
                    continue  # it has ended already
                job = self._wait(job)
                ended = job.state is State.CANCELLED
                self.rows.append(judged(CANCEL, f"the job is {_said(job)}", ok=ended))
                return
            why = f"{TRIES} jobs had ended before they could be cancelled: raise --items"
            self.rows.append(unchecked(CANCEL, why))

    def redriven(self) -> None:
        """A job that failed by its file, and a dead letter of it: refused first, since it would
        fail again, and then run again by force."""
        with told(REDRIVE, self.rows):
            upload_id = self._uploaded(self._ids(self.items), then="{}")
            job = self._wait(self._submit("redrive", upload_id=upload_id))
            if job.end_reason != EndReason.BAD_UPLOAD:
                saw = f"a job whose file has a bad line is {_said(job)}"
                self.rows.append(judged(REDRIVE, saw, ok=False))
                return
            stored = read_job(self.here.world, job.id)
            if stored is None:
                raise LocalError(f"the control table has no job {job.id}")
            with noted(self.here, "aws-check", job=job.id):
                fates = self._fates(stored)
            job = self._wait(job)
            by = [each.by for each in job.history or () if each.verb == "retry"]
            ok = fates == [Fate.REFUSED, Fate.RETRIED] and by == [OPERATOR] and job.ended
            saw = f"{' and then '.join(fates) or 'no letter came'}; the job is {_said(job)}"
            self.rows.append(judged(REDRIVE, saw, ok=ok))

    def own_records(self) -> None:
        """Puts records into the deployment's table, has a job change them and another one delete
        them. Sinks hear of both."""
        with told(CHANGE, self.rows):
            ids = [f"{id_}-record" for id_ in self._ids(FEW)]
            tenant = self._tenant()
            world, start = self.here.world, {FIELD: 1, "version": 1}
            with noted(self.here, "aws-check", records=len(ids)):
                keys = [Key(tenant, id_, Table.RECORDS) for id_ in ids]
                world.store.transact("aws_check", [Put(key, dict(start)) for key in keys])
            try:
                changed = self._ended("change", ids=ids)
                found = world.records.read(tenant, ids)
                values = [each.fields.get(FIELD) for each in found.values()]
                self._ended("delete", ids=ids, operation="delete_records", params={})
            finally:
                left = self._taken_out(keys)
            ok = (changed.succeeded, values, left) == (FEW, [2] * FEW, 0)
            saw = f"{changed.succeeded} of {FEW} were changed and {FEW - left} deleted again"
            self.rows.append(judged(CHANGE, saw, ok=ok))

    def end(self) -> None:
        """Cancel what has not ended."""
        with told(CLEAN, self.rows):
            left = [
                *(f"fairlane jobs cancel {id_}" for id_ in self.made if not self._let_go(id_)),
                *(f"fairlane dlq list, for a letter of job {id_}" for id_ in self.letters),
            ]
            days = self.here.settings.timing.history / 86_400
            stay = f"{len(self.made)} jobs stay in the tenant's history for {days:g} days"
            self.rows.append(judged(CLEAN, "; ".join(left) or stay, ok=not left))

    # --- inside -------------------------------------------------------------------------------

    def _ids(self, count: int) -> list[str]:
        return [f"{NAME}-{self.run}-{number:05}" for number in range(count)]

    def _submit(self, name: str, **more: Any) -> JobView:
        asked = {"operation": "adjust_number", "params": {"field": FIELD, "add": 1}, **more}
        subject, labels = f"{NAME}/{self.run}/{name}", {"made_by": NAME}
        new = NewJob(subject=subject, labels=labels, **asked)
        job = self.client.submit(new, idempotency_key=f"{self.run}-{name}")
        self.made.append(job.id)
        return job

    def _wait(self, job: JobView) -> JobView:
        return self.client.wait(job.id, poll=POLL_S, timeout=self.patience)

    def _ended(self, name: str, **more: Any) -> JobView:
        return self._wait(self._submit(name, **more))

    def _none_changed(self, what: str, job: JobView, lane: str, count: int) -> None:
        ok = (job.state, job.lane, job.skipped) == (State.SUCCEEDED, lane, count)
        dwell = "" if job.dwell_ms is None else f", after {job.dwell_ms} ms"
        saw = f"{_said(job)} in the {job.lane} lane{dwell}, {job.skipped} of {count} ids skipped"
        self.rows.append(judged(what, saw, ok=ok))

    def _uploaded(self, ids: Sequence[str], *, then: str = "") -> str:
        """A file of these ids, and of one more line."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ids.jsonl"
            path.write_text("\n".join([*map(json.dumps, ids), then]), encoding="utf-8")
            upload_id = self.client.upload(path, NewUpload(format="jsonl"))
            size = path.stat().st_size
        if not then:
            self.rows.append(judged(UPLOAD, f"the store took {size} bytes", ok=True))
        return upload_id

    def _report(self, job: JobView) -> None:
        with told(REPORT, self.rows), tempfile.TemporaryDirectory() as folder:
            report = self.client.report(job.id, form="jsonl", outcome="skipped")
            path = Path(folder) / "report.jsonl"
            fetch(report, path, got=lambda _: None)
            lines = len(path.read_text(encoding="utf-8").splitlines())
            saw = f"{lines} of {self.items} records, from {urlsplit(report.url).hostname}"
            self.rows.append(judged(REPORT, saw, ok=lines == self.items))

    def _fates(self, job: Job) -> list[Fate]:
        """What became of a letter of the job, without and with force."""
        queue = self.here.dead_letters[job.lane]
        self.letters.add(job.id)
        if queue.send([message_for(job)]):
            raise LocalError("the dead-letter queue did not take a message")
        for _ in range(TRIES):
            others: list[tuple[LaneQueue, Letter]] = []
            fates: list[Fate] = []
            for _, where, letter in letters_of(self.here):
                if letter.pointer is None or letter.pointer.job_id != job.id:
                    others.append((where, letter))
                    continue
                try:
                    fates += [
                        redrive(self.here.world, where, letter, force=force).fate
                        for force in (False, True)
                    ]
                finally:
                    # Whatever became of it, it is not to stay.
                    with suppress(ReceiptExpired):
                        where.delete(letter.delivery.receipt)
                        self.letters.discard(job.id)
            show_again(others)
            if fates:
                return fates
        return []

    def _tenant(self) -> str:
        for job_id in self.made:
            if (job := read_job(self.here.world, job_id)) is not None:
                return job.tenant
        raise LocalError("no job was created, so the tenant is not known")

    def _taken_out(self, keys: Sequence[Key]) -> int:
        """Deletes the records that no job has deleted; returns how many there were."""
        world = self.here.world
        there = world.records.read(keys[0].pk, [key.sk for key in keys])
        left = [Delete(key) for key in keys if key.sk in there]
        if left:
            world.store.transact("aws_check", left)
        return len(left)

    def _let_go(self, job_id: str) -> bool:
        """Whether the job has ended. Whatever becomes of the calls, the others' turn comes."""
        try:
            if self.client.get(job_id).ended:
                return True
            with suppress(ApiProblem):  # it may have ended since
                self.client.cancel(job_id)
            return self.client.wait(job_id, poll=POLL_S, timeout=self.patience).ended
        except ClientError:
            return False


def _said(job: JobView) -> str:
    return f"{job.state} ({job.end_reason})" if job.end_reason else str(job.state)

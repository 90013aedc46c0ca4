"""Planning a chunk: for each record the operation's outcome, and the write for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..selection.id_sources import filter_of
from ..selection.tables import read_table
from ..words.errors import JobFailed
from ..words.exact_json import exact_loads
from ..words.job import Counts, EndReason
from ..words.limits import MAX_REASON
from ..words.operation import Change, Fail, Operation, Plan, Remove, Skip, Touch
from ..words.stored_values import BadValue, storable
from ..words.table import TABLES, TableNotRead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import BaseModel

    from ..words.filters import Filter
    from ..words.job import Job
    from ..words.operation import Outcome, Record
    from ..words.ports import World
    from ..words.table import Reader
    from ..words.writes import Item, Value, Write


@dataclass(frozen=True)
class Work:
    """An operation with its parameters, ready to be applied."""

    operation: Operation
    parameters: BaseModel
    filter: Filter | None = None
    """The filter that a query's records must match when they are read."""

    def outcome(self, record: Record) -> Outcome:
        """Never raises: one bad record never fails its neighbours."""
        try:
            return _checked(self.operation.apply(record.fields, self.parameters))
        except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it raises is this record's
            return Fail(_words_of(error))


def work_of(world: World, job: Job) -> Work:
    """What the job asks for, with its lookup tables. Raises JobFailed when this version does not
    understand it or a table is gone, Transient."""
    return _work(world, job, {TABLES: lambda upload_id: read_table(world, job, upload_id)})


def check_understood(world: World, job: Job) -> None:
    """Raise JobFailed for a job that this version does not understand. Reads nothing."""
    _work(world, job, {})


def _work(world: World, job: Job, context: Mapping[str, Reader]) -> Work:
    operation = world.operations.get(job.operation)
    if operation is None:
        raise JobFailed(EndReason.UNKNOWN_OPERATION, f"there is no operation {job.operation!r}")
    try:
        parameters = operation.parameters.model_validate(exact_loads(job.params), context=context)
    except TableNotRead as error:
        looks = error.told(f"the check of the parameters of {job.operation!r}")
        raise JobFailed(EndReason.BAD_PARAMETERS, looks) from error
    except ValueError as error:
        raise JobFailed(EndReason.BAD_PARAMETERS, str(error)) from error
    return Work(operation, parameters, None if job.query is None else filter_of(job.query))


def _checked(outcome: object) -> Outcome:
    """Raises for what an operation must not return: the transaction would raise it for the whole
    chunk, whose job would then be tried again and again."""
    match outcome:
        case Change(fields):
            storable({name: value for name, value in fields.items() if value is not None})
            if "" in fields:
                raise BadValue("a field has no name")
        case Fail(reason):
            return Fail(_reason(reason))
        case Skip(reason):
            return Skip(_reason(reason))
        case Remove() | Touch():
            pass
        case _:
            raise TypeError(f"the operation returned {type(outcome).__name__}, which is no outcome")
    return outcome


def _reason(reason: object) -> str:
    """As it can be stored. Raises TypeError."""
    if not isinstance(reason, str):
        raise TypeError(f"the operation's reason is {type(reason).__name__}, not text")
    return _whole(reason[:MAX_REASON]) if reason.strip() else "the operation gave no reason"


def _words_of(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        return _whole(f"{kind}: {error}"[:MAX_REASON])
    except Exception:  # noqa: BLE001  an error's own words may raise, too
        return kind


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs, which no store takes."""
    return text.encode("utf-8", "replace").decode()


def plan(world: World, job: Job, work: Work, ids: Sequence[str]) -> dict[str, Plan]:
    """Read the records (one call) and plan each of them. Raises Transient."""
    records = world.records.read(job.tenant, ids)
    return {id_: plan_one(world, job, work, id_, records.get(id_)) for id_ in ids}


def plan_one(world: World, job: Job, work: Work, id_: str, record: Record | None) -> Plan:
    if record is None:
        return Plan(id_, work.operation.missing)
    if record.last_job_id == job.id:
        # Only possible for an id that was in an earlier chunk too.
        return Plan(id_, Skip("already changed by this job"))
    if work.filter is not None and not _matches(work.filter, record):
        # An index lags, and so does a list that was written down before.
        return Plan(id_, Skip("no longer matches the query"))
    outcome = work.outcome(record)
    try:
        write = _write(world, job, record, outcome)
        return Plan(id_, outcome, write, _version(record, outcome), record)
    except ValueError as error:
        return Plan(id_, Fail(str(error)))


def _matches(filter_: Filter, record: Record) -> bool:
    from ..words.filters import matches  # noqa: PLC0415  slow to import, and few jobs have a filter

    return matches(filter_, record.fields)


def _write(world: World, job: Job, record: Record, outcome: Outcome) -> Write | None:
    match outcome:
        case Change(fields):
            return world.records.change(record, fields, job.id)
        case Remove():
            return world.records.remove(record, job.id)
        case _:
            return None


def _version(record: Record, outcome: Outcome) -> int:
    return record.version if isinstance(outcome, Touch) else record.version + 1


def tally(plans: Sequence[Plan]) -> Counts:
    failed = sum(isinstance(p.outcome, Fail) for p in plans)
    skipped = sum(isinstance(p.outcome, Skip) for p in plans)
    return Counts(succeeded=len(plans) - failed - skipped, failed=failed, skipped=skipped)


def outcome_rows(plans: Sequence[Plan]) -> dict[str, Item]:
    """The failed and the skipped records of a chunk with their reasons, a row for each outcome that
    it has."""
    entries: dict[str, list[Mapping[str, Value]]] = {"failed": [], "skipped": []}
    for each in plans:
        if isinstance(each.outcome, Fail | Skip):
            outcome = "failed" if isinstance(each.outcome, Fail) else "skipped"
            entries[outcome].append({"id": each.id, "reason": each.outcome.reason[:MAX_REASON]})
    return {outcome: {outcome: listed} for outcome, listed in entries.items() if listed}

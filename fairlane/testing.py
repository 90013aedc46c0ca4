"""What tests of operations use::

from fairlane.testing import tried


def test_a_price_is_raised() -> None:
    done = tried(raise_price, {"price": 10}, percent="10")
    assert done.after == {"price": 11}

A parameter that is a lookup table is given as ``table({"EUR": {"rate": 2}})``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from handlers.jobs.execution.planning import Work
from handlers.jobs.words.exact_json import exact_json, exact_loads
from handlers.jobs.words.operation import Change, Fail, Fields, Operation, Outcome, Record, Remove
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.stored_values import BadValue, storable
from handlers.jobs.words.table import TABLES, Row, Table, TableNotRead
from handlers.operations.parameters import RESERVED
from handlers.operations.registry import all_operations


@dataclass(frozen=True)
class Tried:
    """What a job would do to one record."""

    outcome: Outcome
    before: Fields
    after: Fields | None
    """None: there is no record any more."""


def table(rows: Mapping[str, Row]) -> Table:
    """A lookup table with these rows, by their keys, for a parameter of that type. CSV files have
    only texts in their rows."""
    return Table(rows)


class OperationBroken(AssertionError):
    """The operation does what no operation may, whatever the record."""


def tried(
    operation: Callable[..., Outcome],
    record: Fields,
    /,
    *,
    missing: bool = False,
    **parameters: Any,
) -> Tried:
    """What a job with these parameters would do to a record with these fields.

    operation: the decorated function. missing: there is no record of the id. The parameters go
    through JSON, as a client's do. Raises pydantic.ValidationError when they are refused, and
    OperationBroken when the operation changes what it was given, answers differently the second
    time, or writes a field that it did not declare.
    """
    return try_operation(declared(operation), record, parameters, missing=missing)


def declared(apply: Callable[..., Outcome]) -> Operation:
    """The operation that was declared with this function. Raises LookupError."""
    for each in all_operations().values():
        if each.apply is apply:
            return each
    raise LookupError(f"{apply!r} is not decorated with @operation(...)")


def try_operation(
    operation: Operation, record: Fields, parameters: object, *, missing: bool = False
) -> Tried:
    """See ``tried``; parameters: as in the body of a request, but with the tables themselves."""
    tables: dict[str, Table] = {}
    content = exact_loads(exact_json(_without(tables, parameters)))
    work = Work(
        operation,
        operation.parameters.model_validate(content, context={TABLES: tables.__getitem__}),
    )
    writes = _writes(operation, content)
    before = storable(record)
    if missing:
        return Tried(operation.missing, {}, None)
    outcome = _outcome(work, before)
    again = _outcome(work, before)
    if outcome != again:
        raise OperationBroken(
            f"{operation.name} answered {outcome}, and the second time {again}: an operation has "
            "to be a pure function, because a chunk may run again"
        )
    try:
        return Tried(outcome, before, _after(work, writes, before, outcome))
    except (ValueError, TypeError, BadValue) as error:
        # As in a job: what no record can hold is that record's failure.
        return Tried(Fail(str(error)), before, before)


def _without(tables: dict[str, Table], value: object) -> object:
    """The value with the id of an upload for each table, and the tables by these ids."""
    match value:
        case Table():
            tables[id_ := f"{len(tables):032x}"] = value
            return {"upload_id": id_}
        case Mapping():
            return {name: _without(tables, part) for name, part in value.items()}
        case list() | tuple():
            return [_without(tables, part) for part in value]
        case _:
            return value


def _writes(operation: Operation, content: object) -> frozenset[str]:
    """As a job's creation asks for them: tables have not been read. content: the parameters."""
    part = "check of the parameters"
    try:
        parameters = operation.parameters.model_validate(content)
        part = "`writes`"
        return operation.writes(parameters)
    except TableNotRead as error:
        raise OperationBroken(
            f"the {part} of {operation.name} looks into a table, which only the function can"
        ) from error


def _outcome(work: Work, before: Fields) -> Outcome:
    given = copy.deepcopy(dict(before))
    outcome = work.outcome(Record("tenant", "id", 1, given))
    if given != before:
        raise OperationBroken(
            f"{work.operation.name} changed the record that it was given; it has to return a Change"
        )
    if not isinstance(outcome, Outcome):
        raise OperationBroken(f"{work.operation.name} returned {outcome!r}, which is no outcome")
    return outcome


def _after(work: Work, writes: frozenset[str], before: Fields, outcome: Outcome) -> Fields | None:
    """Raises ValueError for a change that cannot be stored."""
    if isinstance(outcome, Remove):
        return None
    if not isinstance(outcome, Change):
        return before
    _check_written(work, writes, outcome)
    # The job's own way: it checks what a record can hold.
    RecordSchema().change(Record("tenant", "id", 1, before), outcome.fields, "job")
    kept = {**before, **outcome.fields}
    return storable({name: value for name, value in kept.items() if value is not None})


def _check_written(work: Work, writes: frozenset[str], outcome: Change) -> None:
    names = set(outcome.fields)
    if reserved := sorted(names & RESERVED):
        raise OperationBroken(
            f"{work.operation.name} writes {', '.join(reserved)}, which are Fairlane's"
        )
    if more := sorted(names - writes):
        raise OperationBroken(
            f"{work.operation.name} writes {', '.join(more)}, which its `writes` does not name"
        )

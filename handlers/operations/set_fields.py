"""Set or remove fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pydantic import Field

from ..jobs.words.operation import Change, Skip
from .parameters import FieldName, FieldValue, Parameters
from .registry import operation

if TYPE_CHECKING:
    from ..jobs.words.operation import Fields, Outcome
    from ..jobs.words.writes import Value

MAX_FIELDS: Final = 100


class SetFields(Parameters):
    fields: dict[FieldName, FieldValue] = Field(min_length=1, max_length=MAX_FIELDS)
    """The new value of each field; null removes the field."""


@operation("set_fields", SetFields, writes=lambda parameters: frozenset(parameters.fields))
def set_fields(record: Fields, parameters: SetFields) -> Outcome:
    """Give every record the same values: ``{"fields": {"colour": "red", "draft": null}}``.

    A value is a string, a number (exact, up to 38 digits), true or false, or a list or map of
    these; null removes the field. A record that has all of them already is skipped, and keeps its
    version.
    """
    changed = {
        name: value for name, value in parameters.fields.items() if not _has(record, name, value)
    }
    return Change(changed) if changed else Skip("has these values already")


def _has(record: Fields, name: str, value: Value) -> bool:
    if value is None:
        return name not in record
    return name in record and _same(record[name], value)


def _same(one: Value, other: Value) -> bool:
    # In Python True == 1, in a record they differ.
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, Sequence) and isinstance(other, Sequence):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other

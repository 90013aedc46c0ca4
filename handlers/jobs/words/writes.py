"""Conditional writes: a small vocabulary of writes and the conditions they depend on.

Every protocol of Fairlane is a list of these values (``transitions``), executed as one
all-or-nothing transaction by a ``Store`` (``ports``). Because conditions are values, the rules are
the same bytes on DynamoDB and in memory: the simulation proves the conditions that run on AWS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

# Never a float: numbers are int or Decimal from end to end.
Value: TypeAlias = "str | int | Decimal | bool | Sequence[Value] | Mapping[str, Value] | None"
Item: TypeAlias = Mapping[str, Value]

MAX_ACTIONS: Final = 100
"""Writes in one transaction (DynamoDB TransactWriteItems)."""


class Table(StrEnum):
    CONTROL = "control"
    RECORDS = "records"


@dataclass(frozen=True)
class Key:
    """The full primary key of an item. For records: ``pk`` is the tenant, ``sk`` the record id."""

    pk: str
    sk: str
    table: Table = Table.CONTROL


# --- conditions on one item; a missing item has no attributes ---------------------------------


@dataclass(frozen=True)
class Equals:
    """The attribute is there and equal."""

    name: str
    value: Value


@dataclass(frozen=True)
class Differs:
    """The attribute is missing or not equal."""

    name: str
    value: Value


@dataclass(frozen=True)
class Below:
    """The attribute is there and less than the value."""

    name: str
    value: Value


@dataclass(frozen=True)
class BelowName:
    """Both attributes are there, and the first is less than the other one of the same item."""

    name: str
    other: str


@dataclass(frozen=True)
class AtMost:
    """The attribute is there and less than or equal to the value."""

    name: str
    value: Value


@dataclass(frozen=True)
class Missing:
    """The attribute (or the whole item) is not there."""

    name: str


@dataclass(frozen=True)
class Present:
    name: str


@dataclass(frozen=True)
class AnyOf:
    conditions: tuple[Condition, ...]


Condition: TypeAlias = "Equals | Differs | Below | BelowName | AtMost | Missing | Present | AnyOf"
When: TypeAlias = tuple[Condition, ...]
"""All of these must hold; the empty tuple always does."""


def as_stored(item: Item, name: str) -> Condition:
    """The attribute is as it was read, also if it was not there."""
    return Equals(name, item[name]) if name in item else Missing(name)


# --- writes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    """Replace the whole item. ``item`` holds the attributes without the key."""

    key: Key
    item: Item
    when: When = ()


@dataclass(frozen=True)
class Update:
    """Change some attributes; creates the item when it is missing and the condition allows it.

    ``add`` counts from 0 when the attribute is missing.
    """

    key: Key
    set: Item = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    when: When = ()


@dataclass(frozen=True)
class Delete:
    key: Key
    when: When = ()


@dataclass(frozen=True)
class Check:
    """Write nothing, but refuse the transaction unless the condition holds."""

    key: Key
    when: When


Write: TypeAlias = Put | Update | Delete | Check

# --- indexes ----------------------------------------------------------------------------------


class Index(StrEnum):
    """The sparse indexes of the control table; each has ``<name>_pk`` and ``<name>_sk``."""

    DUE = "due"
    """Sharded by kind; sorted by ``due_sk``: when to look at the item, epoch ms (number)."""
    BY_TENANT = "by_tenant"
    """Jobs of a tenant; sorted by job id, which sorts by creation time (string)."""
    HELD = "held"
    """Jobs of a tenant and lane that wait for a slot; sorted by job id (string)."""

    def __init__(self, name: str) -> None:
        self.pk: Final = f"{name}_pk"
        self.sk: Final = f"{name}_sk"


Cursor: TypeAlias = Mapping[str, "str | int"]
"""Where a query stopped: the key attributes of the last item. Opaque, JSON-able."""


@dataclass(frozen=True)
class Found:
    key: Key
    item: Item


@dataclass(frozen=True)
class Page:
    found: tuple[Found, ...]
    next: Cursor | None = None
    """Pass as ``after`` to get the rest; None when there is no more."""

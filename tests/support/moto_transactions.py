"""A correction of what a transaction costs in moto's database.

moto 5.2 copies the whole table for each action of a transaction, to put it back when one of them is
refused: a hundred copies of every record for one chunk. It makes all of them before the first
action, so one copy of a table is as good as a hundred.
"""

from __future__ import annotations

import copy
from contextvars import ContextVar
from functools import wraps
from types import SimpleNamespace
from typing import Any, Final

from moto.dynamodb import models
from moto.dynamodb.models.table import Table

_TAKEN: Final[ContextVar[dict[int, Table] | None]] = ContextVar("taken", default=None)
"""In a transaction, the copies of tables so far, by the table's identity."""


def correct() -> None:
    """Correct moto, in this process, once."""
    if models.copy is not copy:  # type: ignore[attr-defined]  # what it imports
        return
    transact = models.DynamoDBBackend.transact_write_items

    @wraps(transact)
    def transact_write_items(self: models.DynamoDBBackend, transact_items: Any) -> None:
        token = _TAKEN.set({})
        try:
            transact(self, transact_items)
        finally:
            _TAKEN.reset(token)

    vars(models)["copy"] = SimpleNamespace(deepcopy=_copied)
    models.DynamoDBBackend.transact_write_items = transact_write_items  # type: ignore[method-assign]


def _copied(value: Any) -> Any:
    taken = _TAKEN.get()
    if taken is None or not isinstance(value, Table):
        return copy.deepcopy(value)
    if id(value) not in taken:
        taken[id(value)] = copy.deepcopy(value)
    return taken[id(value)]

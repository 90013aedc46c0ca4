"""Delete records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..jobs.words.operation import Remove
from .parameters import Parameters
from .registry import operation

if TYPE_CHECKING:
    from ..jobs.words.operation import Fields, Outcome


class DeleteRecords(Parameters):
    pass


@operation("delete_records", DeleteRecords, writes=lambda _: frozenset())
def delete_records(_record: Fields, _parameters: DeleteRecords) -> Outcome:
    """Delete every record; it takes no parameters. Their search documents go too. An id without a
    record is skipped.
    """
    return Remove()

"""Bring the search index in line with the records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..jobs.words.operation import Touch
from .parameters import Parameters
from .registry import SEARCH_INDEX, operation

if TYPE_CHECKING:
    from ..jobs.words.operation import Fields, Outcome


class Reindex(Parameters):
    pass


@operation("reindex", Reindex, writes=lambda _: frozenset(), sinks=(SEARCH_INDEX,), missing=Touch())
def reindex(_record: Fields, _parameters: Reindex) -> Outcome:
    """Write every record's search document again, as the record is now; it takes no parameters.
    No record is changed. The document of an id that has no record is deleted.
    """
    return Touch()

"""The choice of a query's traversal: whether its records may change while they are walked."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..words.errors import FairlaneError
from ..words.job import Traversal


class Asked(StrEnum):
    """The traversal that a request may name."""

    AUTO = "auto"
    LIVE = "live"
    SNAPSHOT = "snapshot"


class UnsafeTraversal(FairlaneError):
    """A live walk would skip or repeat records, since the operation moves them in the walk."""

    def __init__(self, fields: frozenset[str]) -> None:
        self.fields = fields
        super().__init__(
            f"the operation writes {', '.join(sorted(fields))}, which the query selects or sorts "
            "by; set traversal to snapshot or auto"
        )


@dataclass(frozen=True)
class TraversalChoice:
    traversal: Traversal
    why: str


def choose_traversal(
    asked: Asked,
    *,
    writes: frozenset[str],
    selects: frozenset[str],
    sorts: frozenset[str],
) -> TraversalChoice:
    """How to walk a query. Raises UnsafeTraversal when live was asked for and isn't safe.

    writes: the fields the operation may write. selects, sorts: the fields of filter and order.
    """
    moving = writes & (selects | sorts)
    if asked is Asked.SNAPSHOT:
        return TraversalChoice(Traversal.SNAPSHOT, "asked for")
    if not moving:
        safe = "the operation writes no field that the query selects or sorts by"
        return TraversalChoice(
            Traversal.LIVE, "the request asks for live; " + safe if asked is Asked.LIVE else safe
        )
    if asked is Asked.LIVE:
        raise UnsafeTraversal(moving)
    return TraversalChoice(
        Traversal.SNAPSHOT,
        f"the operation writes {', '.join(sorted(moving))}, which the query selects or sorts by",
    )

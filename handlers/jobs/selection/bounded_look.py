"""The bounded look at creation: a query or a file over few records makes a small job.

The look reaches the end within its calls, bytes and milliseconds (``Limits``), and the ids are
fixed; or it says nothing, and the job is bulk. It never fails a creation: what it cannot read now,
the worker reads later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..words.errors import JobFailed, QueryRefused, Transient
from ..words.limits import QUERY_PAGE
from .id_sources import first_block
from .upload_parser import BadUpload, parse_ids

if TYPE_CHECKING:
    from ..words.filters import Filter
    from ..words.ports import World
    from ..words.upload import Upload


@dataclass(frozen=True)
class Few:
    """All ids of a selection, at most ``small_max_items``."""

    ids: tuple[str, ...]
    duplicates: int = 0


def few_by_query(world: World, tenant: str, query: Filter) -> Few | None:
    """The records that match now; None when the look did not reach the end. At most
    ``look_calls`` calls, none of them after ``look_ms``."""
    if world.query is None:
        return None
    limits, most = world.limits, world.limits.small_max_items
    until = world.runtime.now() + limits.look_ms
    found: dict[str, None] = {}
    cursor: str | None = None
    for _ in range(limits.look_calls):
        try:
            wanted = min(most + 1 - len(found), QUERY_PAGE)
            page = world.query.page(tenant, query, cursor, wanted)
        except (Transient, QueryRefused):
            return None
        found |= dict.fromkeys(match.id for match in page.found)
        if len(found) > most:
            return None
        cursor = page.next
        if cursor is None:
            return Few(tuple(found))
        if world.runtime.now() >= until:
            return None
    return None


def few_in_upload(world: World, upload: Upload) -> Few | None:
    """The distinct ids of a file that fits into one block; None for a larger one, one with more
    ids, and one that the worker will refuse. One call."""
    limits = world.limits
    if not limits.look_calls or upload.size > limits.look_bytes:
        return None
    ids: dict[str, None] = {}
    read = 0
    try:
        block = first_block(world, upload)
        for id_ in parse_ids([block], upload, max_bytes=limits.look_bytes):
            read += 1
            ids[id_] = None
            if len(ids) > limits.small_max_items:
                return None
    except (BadUpload, JobFailed, Transient):
        return None
    return Few(tuple(ids), read - len(ids))

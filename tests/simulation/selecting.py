"""How the jobs of some seeds select their records, by a file or by a query over an index that lags,
and which records a query has to find by the simulation's own books."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.selection.traversal import Asked
from handlers.jobs.words.filters import Comparison, Equality, Filter
from handlers.jobs.words.upload import Format, UploadForm

from .watched_store import MAX_LAG

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from handlers.jobs.words.ports import World
    from handlers.jobs.words.writes import Item
    from handlers.testing.uploads import MemoryUploadStore

    from .people import Request

KINDS: Final = ("a", "b")
"""Values of the field by which queries select."""
LOOKED_AT: Final = 6
"""Records that one page of a query looks at."""
BAD_LINE: Final = b"{not an id}\n"


@dataclass(frozen=True)
class Query:
    """A query, and its own reading of a record."""

    kind: str
    below: int | None
    """Also ``n`` is below this: a field that the operation writes."""

    @property
    def filter(self) -> Filter:
        by_kind = Equality(field="kind", op="eq", value=self.kind)
        if self.below is None:
            return Filter(all=(by_kind,))
        return Filter(all=(by_kind, Comparison(field="n", op="lt", value=self.below)))

    def matches(self, item: Item | None) -> bool:
        if item is None or item.get("kind") != self.kind:
            return False
        n = item.get("n")
        return self.below is None or (isinstance(n, int) and n < self.below)


@dataclass
class History:
    """What each record was, from when on, and which job made it so."""

    of: dict[tuple[str, str], list[tuple[int, Item | None, str | None]]] = field(
        default_factory=dict
    )

    def wrote(self, tenant: str, id_: str, now: int, item: Item | None, job: str | None) -> None:
        self.of.setdefault((tenant, id_), []).append((now, item, job))

    def must_be_found(self, query: Query, tenant: str, job: str, asked_at: int) -> set[str]:
        """The records that matched all the time, from the oldest state that an index could show
        when the job was asked for, until the job changed them."""
        since = asked_at - MAX_LAG
        return {
            id_
            for (owner, id_), states in self.of.items()
            if owner == tenant and _matched(query, states, since, job)
        }


def _matched(
    query: Query, states: list[tuple[int, Item | None, str | None]], since: int, job: str
) -> bool:
    found = False
    for index, (_, item, by) in enumerate(states):
        if index + 1 < len(states) and states[index + 1][0] <= since:
            continue  # over before
        if by == job:
            return found
        if not query.matches(item):
            return False
        found = True
    return found and states[0][0] <= since


@dataclass(frozen=True)
class Selecting:
    """What the clients of one seed send instead of ids."""

    random: Random
    uploads: MemoryUploadStore
    sent: dict[str, Request] = field(default_factory=dict)
    """The requests with a file, by its name."""
    lost: set[str] = field(default_factory=set)
    """Names of files that are gone."""

    def by_query(self, request: Request) -> Mapping[str, Any]:
        """The parts of the request that select its records."""
        below = self.random.choice((None, None, 1, 3))
        query = Query(self.random.choice(KINDS), below)
        request.query = query
        asked = self.random.choice((Asked.AUTO, Asked.SNAPSHOT, Asked.LIVE))
        return {"ids": None, "query": query.filter, "traversal": asked}

    def by_file(self, world: World, tenant: str, request: Request) -> Mapping[str, Any]:
        """The same, once the file with the ids is sent."""
        form = UploadForm(format=Format.JSONL, gzip=self.random.random() < 0.3)
        offer = offer_upload(world, tenant, form)
        self.uploads.send(offer.address, self._content(request, form))
        self.sent[offer.address.fields["name"]] = request
        return {"ids": None, "upload_id": offer.upload_id}

    def _content(self, request: Request, form: UploadForm) -> bytes:
        lines = [json.dumps(id_).encode() + b"\n" for id_ in request.ids]
        for _ in range(self.random.choice((0, 0, 3))):
            lines.insert(self.random.randint(0, len(lines)), self.random.choice((b"\n", lines[0])))
        if self.random.random() < 0.1:
            request.bad_file = True
            lines.insert(self.random.randint(0, len(lines)), BAD_LINE)
        content = b"".join(lines)
        return gzip.compress(content, mtime=0) if form.gzip else content

    def lose_one(self) -> None:
        """A bucket's lifecycle removes a file."""
        if names := sorted(self.uploads.names()):
            name = self.random.choice(names)
            self.uploads.drop(name)
            self.lost.add(name)

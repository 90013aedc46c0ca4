"""``GET /v1/jobs``: the tenant's jobs, newest first, in pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time
from typing import TYPE_CHECKING, Final

from ..jobs.storage import control_table
from ..jobs.words.errors import Undecodable
from ..jobs.words.states import State
from ..jobs.words.writes import Index
from .page_tokens import place_of, token
from .problems import bad_request
from .views import is_job_id, job_view

if TYPE_CHECKING:
    from ..jobs.words.job import Job
    from ..jobs.words.ports import World
    from ..jobs.words.writes import Cursor, Found, Item
    from .query import Query

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
_HOUR_24: Final = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d(-?\d)?).24")
"""The end of a day in ISO 8601: some versions of Python read it, RFC 3339 has no such hour."""
READ: Final = 500
"""Jobs of one read, when a filter may pass most of them over."""
MOST_LOOKED_AT: Final = 20_000
"""Jobs that one page looks at: where a filter matches less, the page ends early and the next one
goes on."""
MAX_LOOK: Final = 6000
"""The time (ms) after which a page ends early, too."""
PARAMETERS: Final = (
    "limit",
    "page",
    "state",
    "operation",
    "subject",
    "label",
    "created_after",
    "created_before",
)
LATEST: Final = 16**12 - 1
"""The last millisecond that has its place in a job id."""


@dataclass(frozen=True)
class Wanted:
    """Which jobs a list shows."""

    states: frozenset[State]
    operation: str | None
    subject: str | None
    labels: Mapping[str, str]
    after: int | None
    """Created at or after, epoch ms."""
    before: int | None
    """Created before."""

    @property
    def filters(self) -> bool:
        """Whether it leaves out jobs for what they are."""
        return bool(self.states or self.operation or self.subject or self.labels)

    def shows(self, item: Item) -> bool:
        """item: of a job, not decoded: most of many jobs are passed over."""
        labels = item.get("labels")
        return (
            (not self.states or item.get("state") in self.states)
            and self.operation in {None, item.get("operation")}
            and self.subject in {None, item.get("subject")}
            and all(
                isinstance(labels, Mapping) and labels.get(name) == value
                for name, value in self.labels.items()
            )
        )

    def key(self) -> tuple[str, ...]:
        """The same for the same list."""
        labels = sorted(f"{name}={value}" for name, value in self.labels.items())
        states = sorted(state.value for state in self.states)
        return (
            *(str(states), str(self.operation), str(labels)),
            *(str(self.after), str(self.before), str(self.subject)),
        )


def wanted(query: Query) -> Wanted:
    """Raises Problem."""
    return Wanted(
        states=frozenset(_state(text) for text in query.many("state")),
        operation=query.get("operation"),
        subject=query.get("subject"),
        labels=dict(_label(text) for text in query.many("label")),
        after=_time("created_after", query.get("created_after")),
        before=_time("created_before", query.get("created_before")),
    )


def jobs_page(world: World, tenant: str, query: Query, base: str) -> dict[str, object]:
    """``{"jobs": [...], "next": token}``; fewer jobs than asked for, or none, while there are more
    when a filter matches little. base: see ``addresses``. Raises Problem."""
    limit = query.whole("limit", default=DEFAULT_LIMIT, most=MAX_LIMIT)
    wants = wanted(query)
    list_ = (tenant, "jobs", *wants.key())
    text = query.get("page")
    after = _start(tenant, wants) if text is None else _place(tenant, list_, text)
    jobs: list[dict[str, object]] = []
    looked_at, since = 0, world.runtime.now()
    while True:
        page = world.store.query(
            Index.BY_TENANT,
            control_table.tenant_partition(tenant),
            descending=True,
            limit=READ if wants.filters else limit,
            after=after,
        )
        looked_at += READ if wants.filters else limit
        for found in page.found:
            if wants.after is not None and _created(found) < wants.after:
                return {"jobs": jobs}
            job = _readable(world, tenant, found) if wants.shows(found.item) else None
            if job is not None:
                jobs.append(job_view(job, world.runtime.now(), base=base, whole=False))
            if len(jobs) == limit:
                return {"jobs": jobs, "next": token(list_, [str(found.item[Index.BY_TENANT.sk])])}
        if page.next is None:
            return {"jobs": jobs}
        after = page.next
        if looked_at >= MOST_LOOKED_AT or world.runtime.now() - since > MAX_LOOK:
            break
    return {"jobs": jobs, "next": token(list_, [str((after or {})[Index.BY_TENANT.sk])])}


def _readable(world: World, tenant: str, found: Found) -> Job | None:
    try:
        return control_table.job_of(found.item)
    except Undecodable as error:
        world.telemetry.log("job_not_listed", tenant=tenant, pk=found.key.pk, why=str(error))
        return None


def _created(found: Found) -> int:
    """A job's id begins with its time."""
    return int(str(found.item[Index.BY_TENANT.sk])[:12], 16)


def _start(tenant: str, wants: Wanted) -> Cursor | None:
    if wants.before is None:
        return None
    return _at(tenant, f"{min(wants.before, LATEST):012x}{0:020x}")


def _place(tenant: str, list_: tuple[str, ...], text: str) -> Cursor:
    match place_of(list_, text):
        case [str() as job_id] if is_job_id(job_id):
            return _at(tenant, job_id)
    raise bad_request("page", "is not a token of this list")


def _at(tenant: str, job_id: str) -> Cursor:
    """Where a list of the tenant goes on after a job."""
    key = control_table.job_key(job_id)
    return {
        "pk": key.pk,
        "sk": key.sk,
        Index.BY_TENANT.pk: control_table.tenant_partition(tenant),
        Index.BY_TENANT.sk: job_id,
    }


def _state(text: str) -> State:
    try:
        return State(text)
    except ValueError:
        known = ", ".join(state.value for state in State)
        raise bad_request("state", f"must be one of {known}") from None


def _label(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name:
        raise bad_request("label", "must be name:value")
    return name, value


def _time(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is not None and not (at.time() == time.min and _HOUR_24.match(text)):
            return max(0, round(at.timestamp() * 1000))
    except (ValueError, OverflowError):
        pass
    raise bad_request(name, "must be a time with its zone, as 2026-01-31T12:00:00Z")

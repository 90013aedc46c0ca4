"""Lists in pages: opaque tokens that only go on where they came from."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Final

from ..jobs import items
from ..jobs.errors import Undecodable
from ..jobs.store import Index
from .problems import bad_request
from .views import is_job_id, job_view

if TYPE_CHECKING:
    from ..jobs.ports import World
    from ..jobs.store import Cursor

DEFAULT_LIMIT: Final = 50
MAX_LIMIT: Final = 200
WHOLE: Final = re.compile(r"[0-9]{1,3}")


def jobs_page(world: World, tenant: str, limit: str | None, token: str | None) -> dict[str, object]:
    """The tenant's jobs, newest first: ``{"jobs": [...], "next": token}``. Raises Problem."""
    page = world.store.query(
        Index.BY_TENANT,
        items.tenant_partition(tenant),
        descending=True,
        limit=_limit(limit),
        after=None if token is None else _cursor(tenant, token),
    )
    jobs = []
    for found in page.found:
        try:
            jobs.append(job_view(items.job_of(found.item)))
        except Undecodable as error:
            world.telemetry.log("job_not_listed", tenant=tenant, pk=found.key.pk, why=str(error))
    answer: dict[str, object] = {"jobs": jobs}
    if page.next is not None:
        answer["next"] = _token(page.next)
    return answer


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not WHOLE.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise bad_request("limit", f"must be a whole number from 1 to {MAX_LIMIT}")
    return int(text)


def _token(cursor: Cursor) -> str:
    text = json.dumps(dict(cursor), separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def _cursor(tenant: str, token: str) -> Cursor:
    """The cursor in a token, which the client may have changed."""
    try:
        cursor = json.loads(base64.b64decode(token, altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise bad_request("page", "is not a token of this API") from error
    job_id = cursor.get(Index.BY_TENANT.sk) if isinstance(cursor, dict) else None
    if not is_job_id(job_id) or cursor != _at(tenant, job_id):
        raise bad_request("page", "is not a token of this list")
    return _at(tenant, job_id)


def _at(tenant: str, job_id: str) -> Cursor:
    """Where a list of the tenant goes on after a job."""
    key = items.job_key(job_id)
    return {
        "pk": key.pk,
        "sk": key.sk,
        Index.BY_TENANT.pk: items.tenant_partition(tenant),
        Index.BY_TENANT.sk: job_id,
    }

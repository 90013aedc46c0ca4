"""What a request selects: its ids, its uploaded file or its query, and the job's lane."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

from ..storage.transaction import retry_transient
from ..storage.windows import count_in_window
from ..words.exact_json import exact_loads
from ..words.filters import not_searchable
from ..words.job import Lane, Traversal
from ..words.table import TableNotRead
from ..words.timing import ms
from ..words.upload import Format, Upload, UploadForm
from .bounded_look import few_by_query, few_in_upload
from .request import Unprocessable
from .traversal import UnsafeTraversal, choose_traversal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..words.filters import Filter
    from ..words.limits import Limits
    from ..words.ports import Stored, UploadAddress, World
    from .bounded_look import Few
    from .request import Accepted

UPLOADS: Final = "uploads"


@dataclass(frozen=True)
class Selection:
    """The records that a request selects: ids, an upload or a query; of an upload or a query over
    few records, its ids too."""

    ids: tuple[str, ...] | None = None
    upload: Upload | None = None
    query: Filter | None = None
    traversal: Traversal | None = None
    why: str = ""
    """The reason for the traversal."""
    duplicates: int = 0
    """Repeats in a file whose ids are known."""

    @property
    def known(self) -> int | None:
        """The number of records, if it is known without looking for them."""
        return None if self.ids is None else len(self.ids)


def select(world: World, tenant: str, request: Accepted) -> Selection:
    """The records that a request selects. Raises Unprocessable, Transient."""
    if request.upload_id is not None:
        upload = uploaded(world, tenant, request.upload_id)
        return _fixed(world, Selection(upload=upload), few_in_upload(world, upload))
    if request.query is not None:
        selection = _queried(world, request, request.query)
        return _fixed(world, selection, few_by_query(world, tenant, request.query))
    return Selection(ids=request.ids)


def _fixed(world: World, selection: Selection, few: Few | None) -> Selection:
    """The selection with its ids, if there are few: the job is small then."""
    if few is None:
        return selection
    most = world.limits.small_max_items
    return replace(
        selection,
        ids=few.ids,
        duplicates=few.duplicates,
        traversal=None if selection.query is None else Traversal.SNAPSHOT,
        why=f"at most {most} records: their ids were fixed when the job was created",
    )


def check_address(world: World, request: Accepted) -> None:
    """Raise Unprocessable for an address that must not receive a job's events."""
    if request.notify is None:
        return
    if world.address_problem is None:
        raise Unprocessable("notify", "this deployment sends no events of jobs to addresses")
    if problem := world.address_problem(request.notify):
        raise Unprocessable("notify.url", problem)


# --- uploads ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Offer:
    """An upload that may be sent now."""

    upload_id: str
    address: UploadAddress
    seconds: int


@dataclass(frozen=True)
class TooManyUploads(Exception):
    """The tenant was given as many addresses as it may have at once."""

    limit: int
    wait_ms: int
    """Until it may have more."""


def offer_upload(world: World, tenant: str, form: UploadForm) -> Offer:
    """An address for one file of the tenant. Raises Unprocessable where none are taken,
    TooManyUploads, Transient."""
    if world.uploads is None:
        raise Unprocessable("", "this deployment takes no uploads")
    most = world.limits.max_uploads_per_tenant
    window = ms(world.limits.upload_seconds)
    wait = count_in_window(world, "UPLOADS", tenant, limit=most, window=window)
    if wait is not None:
        raise TooManyUploads(most, wait)
    upload_id = (world.runtime.token() + world.runtime.token())[:32]
    seconds = world.limits.upload_seconds
    address = world.uploads.address(_name(tenant, upload_id), _notes(form), seconds=seconds)
    return Offer(upload_id, address, seconds)


def _name(tenant: str, upload_id: str) -> str:
    """The file's name, under the tenant's own prefix: no id leads to another tenant's file."""
    owner = hashlib.sha256(b"fairlane-uploads:" + tenant.encode()).hexdigest()[:32]
    return f"{UPLOADS}/{owner}/{upload_id}"


def _notes(form: UploadForm) -> dict[str, str]:
    """The form as ASCII notes on the object, fixed before the client sends it."""
    notes = {"format": form.format.value, "gzip": "yes" if form.gzip else "no"}
    return notes if form.column is None else {**notes, "column": quote(form.column, safe="")}


def _form(notes: Mapping[str, str]) -> UploadForm:
    column = notes.get("column")
    return UploadForm(
        format=Format(notes["format"]),
        column=None if column is None else unquote(column),
        gzip=notes["gzip"] == "yes",
    )


def uploaded(world: World, tenant: str, upload_id: str) -> Upload:
    """The tenant's file as it is now. Raises Unprocessable, Transient."""
    uploads = world.uploads
    if uploads is None:
        raise Unprocessable("upload_id", "this deployment takes no uploads")
    name = _name(tenant, upload_id)
    stored = retry_transient(world, lambda: uploads.look(name))
    if stored is None:
        raise Unprocessable(
            "upload_id",
            "there is no such upload: no file has been sent to its address, or the file expired",
        )
    if not 1 <= stored.size <= world.limits.max_upload_bytes:
        raise Unprocessable(
            "upload_id",
            f"the file has {stored.size} bytes, 1 to {world.limits.max_upload_bytes} are allowed",
        )
    return _upload(name, stored)


def _upload(name: str, stored: Stored) -> Upload:
    try:
        form = _form(stored.notes)
    except (KeyError, ValueError) as error:
        raise Unprocessable("upload_id", "the uploaded file has no format") from error
    return Upload(name=name, version=stored.version, size=stored.size, **form.model_dump())


# --- queries ----------------------------------------------------------------------------------


def _queried(world: World, request: Accepted, query: Filter) -> Selection:
    if world.query is None:
        raise Unprocessable("query", "this deployment takes no queries")
    if problem := not_searchable(query.fields, world.query.searchable):
        raise Unprocessable("query", problem)
    try:
        choice = choose_traversal(
            request.traversal,
            writes=_written(world, request),
            selects=query.fields,
            sorts=world.query.sorts,
        )
    except UnsafeTraversal as error:
        raise Unprocessable("traversal", str(error), error.fields) from error
    return Selection(query=query, traversal=choice.traversal, why=choice.why)


def _written(world: World, request: Accepted) -> frozenset[str]:
    operation = world.operations[request.operation]
    parameters: Any = operation.parameters.model_validate(exact_loads(request.params))
    try:
        return operation.writes(parameters)
    except TableNotRead as error:
        looks = error.told(f"the `writes` of {operation.name!r}")
        raise Unprocessable("operation", looks) from error


def lane_for(known_items: int | None, limits: Limits) -> Lane:
    """The lane of a job. known_items: None when the number is not known before the walk."""
    if known_items is not None and known_items <= limits.small_max_items:
        return Lane.SMALL
    return Lane.BULK

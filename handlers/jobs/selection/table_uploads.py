"""The lookup tables that a request's parameters name, fixed when its job is created."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ..words.errors import JobFailed
from ..words.exact_json import exact_json, exact_loads
from ..words.table import TABLES, Table
from .field_errors import field_errors
from .request import Unprocessable
from .tables import digest_of, keep_table

if TYPE_CHECKING:
    from ..words.ports import World
    from .request import Accepted


def fix_tables(
    world: World, tenant: str, request: Accepted, *, keep: bool = True
) -> Mapping[str, str]:
    """The hash of each table that the parameters name, by its upload's id; the rows are stored.

    keep: False only checks them. Raises Unprocessable, naming the field, Transient.
    """
    fixed: dict[str, str] = {}
    problems: list[str] = []

    def fix(upload_id: str) -> Table:
        if upload_id not in fixed:
            try:
                fixed[upload_id] = _fixed(world, tenant, upload_id, keep=keep)
            except ValueError as error:
                problems.append(str(error))
                raise
        return Table(None)

    operation = world.operations[request.operation]
    try:
        operation.parameters.model_validate(exact_loads(request.params), context={TABLES: fix})
    except ValidationError as error:
        first, *_ = field_errors(error, ("params",))
        raise Unprocessable(first.field, first.detail) from error
    if problems:
        # The parameter may also be of another type, which took the upload's name for a value.
        raise Unprocessable("params", problems[0])
    return fixed


def _fixed(world: World, tenant: str, upload_id: str, *, keep: bool) -> str:
    """Raises ValueError for a file that is no table."""
    from .id_sources import upload_blocks  # noqa: PLC0415  with csv: few jobs have a table
    from .resolve import uploaded  # noqa: PLC0415
    from .table_parser import parse_rows  # noqa: PLC0415
    from .upload_parser import BadUpload  # noqa: PLC0415

    most = world.limits.max_table_bytes
    try:
        upload = uploaded(world, tenant, upload_id)
        if upload.size > most:
            raise ValueError(f"the file has {upload.size} bytes, a table may have {most}")
        rows = parse_rows(upload_blocks(world, upload), upload, max_bytes=most)
        content = as_kept(rows, most)
    except (Unprocessable, BadUpload, JobFailed) as error:
        raise ValueError(str(error)) from error
    if keep:
        keep_table(world, tenant, content)
    return digest_of(content)


def as_kept(rows: Iterable[tuple[str, Mapping[str, object]]], most: int) -> bytes:
    """The rows as JSON Lines. Raises ValueError when that is larger than a table may be."""
    content = bytearray()
    for key, row in rows:
        content += exact_json([key, row]).encode() + b"\n"
        if len(content) > most:
            raise ValueError(
                f"the table has more than {most} bytes as JSON, in which each row names its fields"
            )
    return bytes(content)

"""``POST /v1/jobs?validate_only=true`` and ``POST /v1/uploads``: what comes before a job."""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..jobs.selection.preview import CHUNK_SECONDS, preview
from ..jobs.selection.request import BadRequest, Name, checked, parse
from ..jobs.selection.resolve import TooManyUploads, offer_upload
from ..jobs.words.timing import SECOND
from ..jobs.words.upload import Format, UploadForm
from .problems import Problem, refused
from .views import timestamp

if TYPE_CHECKING:
    from ..jobs.selection.request import Accepted
    from ..jobs.words.ports import World

ASSUMES: Final = (
    f"every record is changed, and a chunk takes {CHUNK_SECONDS} s; writes to indexes of your own "
    "table come on top"
)


class UploadRequest(BaseModel):
    """The body of ``POST /v1/uploads``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Format
    column: Name | None = Field(
        default=None, description="The column or field with the ids, or with a table's keys."
    )
    gzip: bool = Field(default=False, strict=True)

    @model_validator(mode="after")
    def _csv_has_a_column(self) -> Self:
        if self.format is Format.CSV and self.column is None:
            raise ValueError("a CSV file needs the 'column' that holds its ids or keys")
        return self


def preview_view(world: World, tenant: str, accepted: Accepted) -> dict[str, Any]:
    """Raises Problem, Transient."""
    try:
        seen = preview(world, tenant, accepted)
    except BadRequest as error:
        raise refused(error) from error
    view: dict[str, Any] = {
        "valid": True,
        "lane": seen.lane.value,
        "count": seen.count,
        "count_is_exact": seen.exact,
        "duplicates": seen.duplicates,
        "sample": list(seen.sample),
    }
    if seen.traversal is not None:
        view |= {"traversal": seen.traversal.value, "why": seen.why}
    if seen.estimate is not None:
        view["estimate"] = {
            "seconds": seen.estimate.seconds,
            "write_units": seen.estimate.write_units,
            "assumes": ASSUMES,
        }
    return view


def upload_view(world: World, tenant: str, body: str) -> dict[str, Any]:
    """An address for one file. Raises Problem, Transient."""
    try:
        request = checked(UploadRequest, parse(body))
        form = UploadForm(**request.model_dump())
        offer = offer_upload(world, tenant, form)
    except BadRequest as error:
        raise refused(error) from error
    except TooManyUploads as error:
        raise Problem(
            HTTPStatus.TOO_MANY_REQUESTS,
            "too_many_uploads",
            f"the tenant has got {error.limit} upload addresses in this window of "
            f"{world.limits.upload_seconds} seconds, and may not have more",
            retry_after=math.ceil(error.wait_ms / SECOND),
            more={"limit": error.limit},
        ) from error
    return {
        "upload_id": offer.upload_id,
        "url": offer.address.url,
        "fields": dict(offer.address.fields),
        "max_bytes": world.limits.max_upload_bytes,
        "expires_at": timestamp(world.runtime.now() + offer.seconds * 1000),
    }

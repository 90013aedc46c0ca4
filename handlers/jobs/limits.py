"""How much of everything: one home for counts and for the sizes of a job's parts. What the layers
around it take is in ``sizes``."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from .sizes import INLINE_IDS, S3_POST

CHUNK_OVERHEAD: Final = 4
"""Writes of a chunk's transaction that are not records: lease, job, effect row, outcome row."""
MAX_CHUNK: Final = 100 - CHUNK_OVERHEAD

MAX_ID_BYTES: Final = 256
MAX_SUBJECT_BYTES: Final = 256
MAX_TENANT_BYTES: Final = 256
MAX_REASON: Final = 300
"""Characters of one record's reason; a row of a whole chunk stays far below an item's 400 KB."""

MAX_PARAMS_BYTES: Final = 64 * 1024
"""Of an operation's parameters as JSON; with inline ids they stay far below an item's 400 KB."""

INLINE_ID_BYTES: Final = 32 * 1024
"""Above this the ids go to the payload store: the job item is rewritten at every checkpoint."""
PAYLOAD_BLOCK: Final = 256 * 1024
"""Bytes of one ranged read of a stored id list."""

MAX_FILTER_CONDITIONS: Final = 20
MAX_FILTER_VALUES: Final = 200
MAX_FILTER_TEXT_BYTES: Final = 1024
MAX_QUERY_BYTES: Final = 16 * 1024
"""A query as JSON: it stays on the job item, which is rewritten at every checkpoint."""
QUERY_PAGE: Final = 1000
"""Records one page of a query holds at most."""

MAX_LINE_BYTES: Final = 1024 * 1024
"""One line of an uploaded file, or one CSV record over several lines."""


class Limits(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    small_max_items: int = Field(default=100, ge=1)
    """Known items up to this many go to the small lane."""
    chunk_size: int = Field(default=MAX_CHUNK, ge=1, le=MAX_CHUNK)
    max_inline_ids: int = Field(default=INLINE_IDS, ge=1)
    """Ids in one request. Its body has a limit of its own (``sizes.BODY``), whatever this says."""
    max_upload_bytes: int = Field(default=256 * 1024**2, ge=1, le=S3_POST)
    """An uploaded file as it is stored."""
    max_expanded_bytes: int = Field(default=2 * 1024**3, ge=1)
    """The same file once it is decompressed."""
    upload_seconds: int = Field(default=3600, ge=60, le=7 * 86_400)
    """How long an upload address can be used."""
    tenant_slots_small: int = Field(default=50, ge=1)
    tenant_slots_bulk: int = Field(default=2, ge=1)
    """Messages one tenant may have in a lane's queue; the rest is held in its own order."""
    max_active_jobs_per_tenant: int = Field(default=1000, ge=1)
    """Jobs of one tenant that have not ended, held and paused ones too; one more is refused."""
    max_retries: int = Field(default=60, ge=0)
    """How often a job lets go for a dependency without progress before that costs attempts: about
    five hours with the default backoff."""
    max_effect_tries: int = Field(default=30, ge=1)
    """Tries after which an effect is parked: about six hours with the default backoff."""
    recovery_slice: int = Field(default=200, ge=1)
    """Items of each kind one recovery run looks at."""

    def tenant_slots(self, lane: str) -> int:
        return self.tenant_slots_small if lane == "small" else self.tenant_slots_bulk

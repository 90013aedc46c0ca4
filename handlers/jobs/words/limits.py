"""The limits: counts, the sizes of a job's parts, and the limit of each layer around a job.

A body is limited as the client sends it, so that the client can count it. Layers further on hold it
in longer forms: Lambda's event carries it as an escaped JSON string, in which a quote takes two
bytes, and a character outside ASCII up to three times what it took. The limit is so low that the
longest form still fits: a body the function accepts cannot fail on its way there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:
    from collections.abc import Sequence

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

# --- limits of AWS ----------------------------------------------------------------------------

GATEWAY_BODY_BYTES: Final = 10 * MIB
GATEWAY_HEADERS: Final = 10_240
"""Request line and header values together."""
LAMBDA_EVENT_BYTES: Final = 6 * MIB
WAF_BODY_RULE: Final = 8 * KIB
"""SizeRestrictions_BODY of the managed common rules refuses a longer body."""
WAF_INSPECTED: Final = (16 * KIB, 32 * KIB, 48 * KIB, 64 * KIB)
"""The sizes of a body's part that a web ACL can inspect; more than 16 KiB is billed extra."""
ITEM_BYTES: Final = 400 * KIB
TRANSACTION_BYTES: Final = 4 * MIB
MESSAGE_BYTES: Final = MIB
S3_POST_BYTES: Final = 5 * GIB

# --- Fairlane's own limits --------------------------------------------------------------------

EVENT_RESERVE_BYTES: Final = 128 * KIB
"""Room in the event for headers (twice, each escaped), path, query and request context."""
BODY_GROWTH: Final = 3
"""Most bytes one byte of a body becomes in the event: 'é' is two bytes, and six as ``\\u00e9``.
How API Gateway writes it is not documented. (A control character grows to six; no JSON that
can be accepted holds one.)"""
MAX_BODY_BYTES: Final = 2_000_000
"""The largest body of ``POST /v1/jobs``, as sent."""
WAF_BODY_BYTES: Final = (LAMBDA_EVENT_BYTES - EVENT_RESERVE_BYTES) // BODY_GROWTH
"""Above this the web ACL refuses the body, since the request might not reach the function. A body
between ``MAX_BODY_BYTES`` and this is refused by the function itself."""
QUEUE_MESSAGE_BYTES: Final = KIB
"""A message holds a pointer, whatever the job's size."""

UUID_CHARS: Final = 36
ENVELOPE_BYTES: Final = 8 * KIB
"""Room for the rest of a request when its ids are counted before it is known."""


def ids_that_fit(
    id_bytes: int, *, beside: int = ENVELOPE_BYTES, limit: int = MAX_BODY_BYTES
) -> int:
    """How many ids fit into a body as a compact JSON list.

    id_bytes: the size of one id as it stands between its quotes. beside: the bytes of everything
    but ids and commas.
    """
    return max(0, (limit - beside + 1) // (id_bytes + len('"",')))


MAX_INLINE_IDS: Final = ids_that_fit(UUID_CHARS) // 1000 * 1000
"""The default cap on ids in a request: as many UUIDs as fit, in whole thousands."""


def body_bytes(body: str) -> int:
    """The size of the body as sent. A body that was not UTF-8 has been repaired by then, which
    never makes it shorter."""
    return len(body.encode(errors="surrogatepass"))


@dataclass(frozen=True)
class Layer:
    """A place that a request or its job has to get through, with its limit."""

    name: str
    limit: int
    of: str
    """The thing that is measured."""
    source: str
    """The source of the limit."""


def layers(*, inspected: int, inline_bytes: int, upload_bytes: int) -> Sequence[Layer]:
    """The layers, in the order in which a request meets them.

    inspected: the bytes of a body that the web ACL looks at. inline_bytes: the most bytes of ids
    that a job item keeps. upload_bytes: the largest file that can be sent by POST.
    """
    return (
        Layer(
            "waf_body_rule",
            WAF_BODY_RULE,
            "the body, on every route but POST /v1/jobs",
            "AWSManagedRulesCommonRuleSet, SizeRestrictions_BODY",
        ),
        Layer(
            "waf_inspection",
            inspected,
            "the part of the body that body rules see",
            "WAF AssociationConfig for API Gateway, 16 to 64 KiB",
        ),
        Layer(
            "waf_jobs_limit",
            WAF_BODY_BYTES,
            "the body of POST /v1/jobs",
            "ours: event limit / growth",
        ),
        Layer("api_gateway", GATEWAY_BODY_BYTES, "the body", "API Gateway quotas, not raisable"),
        Layer(
            "lambda_event",
            LAMBDA_EVENT_BYTES,
            "the whole event as JSON",
            "Lambda quotas, synchronous invocation",
        ),
        Layer("body", MAX_BODY_BYTES, "the body of POST /v1/jobs, as sent", "ours: 413 above it"),
        Layer(
            "inline_ids", inline_bytes, "ids kept in the job item", "ours: above it they go to S3"
        ),
        Layer("job_item", ITEM_BYTES, "the job's item", "DynamoDB quotas"),
        Layer(
            "transaction", TRANSACTION_BYTES, "the transaction of the new job", "DynamoDB quotas"
        ),
        Layer("queue_message", QUEUE_MESSAGE_BYTES, "the message's body", "ours: SQS takes 1 MiB"),
        Layer("upload", upload_bytes, "a file of ids, by POST to S3", "ours: S3 takes 5 GiB"),
    )


CHUNK_OVERHEAD: Final = 4
"""Writes of a chunk's transaction that are not records: lease, job, effect row and a row of
outcomes. A chunk with rows of both outcomes has at least two records without a write."""
MAX_CHUNK: Final = 100 - CHUNK_OVERHEAD

MAX_ID_BYTES: Final = 256
MAX_SUBJECT_BYTES: Final = 256
MAX_TENANT_BYTES: Final = 256
MAX_REASON: Final = 300
"""Characters of one record's reason; a row of a whole chunk stays far below an item's 400 KB."""

MAX_PARAMS_BYTES: Final = 64 * 1024
"""An operation's parameters as JSON; with inline ids they stay far below an item's 400 KB."""

MAX_TABLES: Final = 4
"""Lookup tables of a job: the API reads them within a request, and a worker holds all of them."""

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
    """A job over at most this many records is a small one."""
    look_calls: int = Field(default=3, ge=0, le=3)
    """Calls by which a creation looks whether a query or a file is over few records; 0: it never
    looks, and each is a bulk job."""
    look_bytes: int = Field(default=64 * 1024, ge=1, le=PAYLOAD_BLOCK)
    """The largest file that a creation looks into, as it is stored and decompressed."""
    look_ms: int = Field(default=500, ge=0, le=5_000)
    """The time after which a creation makes no further call to look."""
    permute_ids: bool = True
    """A stored list of ids is walked in the order of a seeded hash, so that a walk does not write
    to one range of keys after another. False: in the order in which the ids came."""
    chunk_size: int = Field(default=MAX_CHUNK, ge=1, le=MAX_CHUNK)
    max_inline_ids: int = Field(default=MAX_INLINE_IDS, ge=1)
    """Ids in one request; its body is limited by ``MAX_BODY_BYTES``, whatever this says."""
    max_upload_bytes: int = Field(default=256 * 1024**2, ge=1, le=S3_POST_BYTES)
    """An uploaded file as it is stored."""
    max_expanded_bytes: int = Field(default=2 * 1024**3, ge=1)
    """The same file once it is decompressed."""
    max_table_bytes: int = Field(default=4 * 1024**2, ge=1, le=32 * 1024**2)
    """A lookup table of an operation, also decompressed: the API reads it within a request, and a
    process that works with it holds up to 25 times as much in memory. So the memory of the API,
    of the small lane and of a bulk task bounds it."""
    upload_seconds: int = Field(default=3600, ge=60, le=7 * 86_400)
    """How long an upload address can be used."""
    max_uploads_per_tenant: int = Field(default=1000, ge=1)
    """Upload addresses that a tenant is given in ``upload_seconds``: with the largest file, the
    bytes that it can have stored without a job."""
    tenant_slots_small: int = Field(default=50, ge=1)
    tenant_slots_bulk: int = Field(default=2, ge=1)
    """Messages one tenant may have in a lane's queue; its other jobs are held in their order."""
    max_active_jobs_per_tenant: int = Field(default=1000, ge=1)
    """Jobs of one tenant that have not ended, held and paused ones too; one more is refused."""
    max_retries: int = Field(default=60, ge=0)
    """Attempts a job may release because of a dependency, without progress, before each further one
    counts: about five hours with the default backoff."""
    max_effect_tries: int = Field(default=30, ge=1)
    """Tries after which an effect is parked: about six hours with the default backoff."""
    max_dispatch_tries: int = Field(default=30, ge=1)
    """Tries of recovery after which a job's message is parked: about two hours with the default
    backoff."""
    recovery_slice: int = Field(default=200, ge=1)
    """Items of each kind one recovery run looks at."""

    def tenant_slots(self, lane: str) -> int:
        return self.tenant_slots_small if lane == "small" else self.tenant_slots_bulk

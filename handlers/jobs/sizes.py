"""Bytes: what each layer between a client and its job takes, and how many ids that leaves room for.

A body is limited as the client sends it, so that anybody can count it. Layers further on hold it
in longer forms: Lambda's event carries it as an escaped JSON string, in which a quote takes two
bytes, and a character outside ASCII up to three times what it took. The limit is so low that the
longest form still fits: a body the function accepts can't fail on its way there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB

# --- what AWS takes ---------------------------------------------------------------------------

GATEWAY_PAYLOAD: Final = 10 * MIB
GATEWAY_HEADERS: Final = 10_240
"""Request line and header values together."""
EVENT: Final = 6 * MIB
WAF_BODY_RULE: Final = 8 * KIB
"""SizeRestrictions_BODY of the managed common rules refuses a longer body."""
WAF_INSPECTED: Final = (16 * KIB, 32 * KIB, 48 * KIB, 64 * KIB)
"""How much of a body a web ACL can be told to look at; more than 16 KiB is billed extra."""
ITEM: Final = 400 * KIB
TRANSACTION: Final = 4 * MIB
MESSAGE: Final = MIB
S3_POST: Final = 5 * GIB

# --- what is ours -----------------------------------------------------------------------------

EVENT_RESERVE: Final = 128 * KIB
"""Of the event, for headers (twice, each escaped), path, query and request context."""
GROWTH: Final = 3
"""Most bytes one byte of a body becomes in the event: 'é' is two bytes, and six as ``\\u00e9``.
How API Gateway writes it is not documented. (A control character grows to six; no JSON that
can be accepted holds one.)"""
BODY: Final = 2_000_000
"""Of ``POST /v1/jobs``, as sent."""
BODY_AT_WAF: Final = (EVENT - EVENT_RESERVE) // GROWTH
"""Above this the web ACL answers, since the function might never see the request. Between the
two, the function's own answer is still the one that arrives."""
QUEUE_MESSAGE: Final = KIB
"""A pointer, whatever the job's size."""

UUID: Final = 36
ENVELOPE: Final = 8 * KIB
"""Room for the rest of a request when its ids are counted before it is known."""


def fitting(id_bytes: int, *, beside: int = ENVELOPE, limit: int = BODY) -> int:
    """How many ids fit into a body as a compact JSON list.

    id_bytes: of one id as it stands between its quotes. beside: everything but ids and commas.
    """
    return max(0, (limit - beside + 1) // (id_bytes + len('"",')))


INLINE_IDS: Final = fitting(UUID) // 1000 * 1000
"""The default cap on ids in a request: as many UUIDs as fit, in whole thousands."""


def body_bytes(body: str) -> int:
    """As sent. A body that was no UTF-8 has been repaired by then, at most to more bytes."""
    return len(body.encode(errors="surrogatepass"))


@dataclass(frozen=True)
class Layer:
    """One place a request or its job has to get through."""

    name: str
    limit: int
    of: str
    """What is measured."""
    source: str
    """Where the limit comes from."""


def layers(*, inspected: int, inline_bytes: int, upload_bytes: int) -> Sequence[Layer]:
    """In the order in which a request meets them.

    inspected: bytes of a body the web ACL looks at. inline_bytes: of the ids a job item keeps.
    upload_bytes: of a file sent by POST.
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
            "waf_jobs_limit", BODY_AT_WAF, "the body of POST /v1/jobs", "ours: event limit / growth"
        ),
        Layer("api_gateway", GATEWAY_PAYLOAD, "the body", "API Gateway quotas, not raisable"),
        Layer(
            "lambda_event",
            EVENT,
            "the whole event as JSON",
            "Lambda quotas, synchronous invocation",
        ),
        Layer("body", BODY, "the body of POST /v1/jobs, as sent", "ours: 413 above it"),
        Layer(
            "inline_ids", inline_bytes, "ids kept in the job item", "ours: above it they go to S3"
        ),
        Layer("job_item", ITEM, "the job's item", "DynamoDB quotas"),
        Layer("transaction", TRANSACTION, "the transaction of the new job", "DynamoDB quotas"),
        Layer("queue_message", QUEUE_MESSAGE, "the message's body", "ours: SQS takes 1 MiB"),
        Layer("upload", upload_bytes, "a file of ids, by POST to S3", "ours: S3 takes 5 GiB"),
    )

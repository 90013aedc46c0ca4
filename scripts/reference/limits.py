"""docs/reference/limits.md: how large things may be, and how long they are kept."""

from __future__ import annotations

from typing import Final

from handlers.jobs.selection import request
from handlers.jobs.transitions.idempotency import REMEMBERED
from handlers.jobs.words import limits
from handlers.jobs.words.limits import Limits, layers
from handlers.jobs.words.stored_values import MAX_DIGITS
from handlers.jobs.words.timing import DAY, HOUR, SECOND, VISIBILITY_CAP
from handlers.web import create_job, item_results, job_list
from handlers.web.item_results import LINK_SECONDS
from infra.settings import DeploySettings
from infra.storage import REPORT_DAYS

from .docstrings import table

PAGE: Final = """\
# Limits and retention

Those that a deployment can set are in [settings](settings.md#limits); here are their defaults,
too.

## A request

{request}
## What each layer takes

In the order in which a request for a job meets them. [Sizes](../sizes.md) says how they follow
from each other, and `fairlane payload-budget` measures them.

{layers}
## Jobs and tenants

{jobs}
## How long things are kept

{kept}"""
SIZES: Final = ("what", "limit")
DEFAULTS: Final = DeploySettings.model_fields


def page() -> str:
    return PAGE.format(
        request=table(SIZES, _request()),
        layers=table(("layer", "bytes", "of", "source"), _layers()),
        jobs=table((*SIZES, "setting"), _jobs()),
        kept=table(("what", "how long", "setting"), _kept()),
    )


def _request() -> list[tuple[str, str]]:
    numbers = {
        "body of `POST /v1/jobs`, as sent": _bytes(limits.MAX_BODY_BYTES),
        "ids in a body": f"{Limits().max_inline_ids:,}",
        "one id": _bytes(limits.MAX_ID_BYTES),
        "subject, operation, label's name and value": _bytes(limits.MAX_SUBJECT_BYTES),
        "tenant": _bytes(limits.MAX_TENANT_BYTES),
        "labels": f"{request.MAX_LABELS:,}",
        "parameters, as JSON": _bytes(limits.MAX_PARAMS_BYTES),
        "depth of JSON": f"{request.MAX_DEPTH:,} levels",
        "address of `notify`": _bytes(request.MAX_ADDRESS_BYTES),
        "query, as JSON": _bytes(limits.MAX_QUERY_BYTES),
        "conditions of a query": f"{limits.MAX_FILTER_CONDITIONS:,}",
        "values of `in`": f"{limits.MAX_FILTER_VALUES:,}",
        "text in a condition": _bytes(limits.MAX_FILTER_TEXT_BYTES),
        "uploaded file": _bytes(Limits().max_upload_bytes),
        "uploaded file, decompressed": _bytes(Limits().max_expanded_bytes),
        "lookup table, decompressed": _bytes(Limits().max_table_bytes),
        "lookup tables of a job": f"{limits.MAX_TABLES:,}",
        "line of an uploaded file": _bytes(limits.MAX_LINE_BYTES),
        "Idempotency-Key": _bytes(create_job.MAX_KEY_BYTES),
        "errors named in a problem": f"{request.MAX_ERRORS:,}",
        "jobs on a page": f"{job_list.MAX_LIMIT:,}; {job_list.DEFAULT_LIMIT:,} when left out",
        "records on a page of items": f"{item_results.MAX_LIMIT:,}; "
        f"{item_results.DEFAULT_LIMIT:,} when left out",
    }
    return list(numbers.items())


def _layers() -> list[tuple[str, str, str, str]]:
    found = layers(
        inspected=limits.WAF_INSPECTED[0],
        inline_bytes=limits.INLINE_ID_BYTES,
        upload_bytes=Limits().max_upload_bytes,
    )
    return [(f"`{each.name}`", f"{each.limit:,}", each.of, each.source) for each in found]


def _jobs() -> list[tuple[str, str, str]]:
    default = Limits()
    timing = DEFAULTS["timing"].default
    return [
        ("records of a small job", f"{default.small_max_items:,}", "`limits.small_max_items`"),
        ("records of one transaction", f"{default.chunk_size:,}", "`limits.chunk_size`"),
        (
            "a tenant's jobs that have not ended",
            f"{default.max_active_jobs_per_tenant:,}",
            "`limits.max_active_jobs_per_tenant`",
        ),
        (
            "a tenant's messages in the small lane",
            f"{default.tenant_slots_small:,}",
            "`limits.tenant_slots_small`",
        ),
        (
            "a tenant's messages in the bulk lane",
            f"{default.tenant_slots_bulk:,}",
            "`limits.tenant_slots_bulk`",
        ),
        ("attempts that crash", f"{timing.bulk.max_attempts:,}", "`timing.bulk.max_attempts`"),
        ("tries of an effect", f"{default.max_effect_tries:,}", "`limits.max_effect_tries`"),
        ("characters of a record's reason", f"{limits.MAX_REASON:,}", ""),
        ("digits of a number", f"{MAX_DIGITS}", ""),
    ]


def _kept() -> list[tuple[str, str, str]]:
    timing = DEFAULTS["timing"].default
    lane = timing.bulk
    return [
        (
            "jobs that have ended, their outcomes and events",
            _days(timing.history),
            "`timing.history`",
        ),
        (
            "lists of ids, lookup tables",
            _days(DEFAULTS["payload_days"].default * DAY // SECOND),
            "`payload_days`",
        ),
        (
            "uploaded files",
            _days(DEFAULTS["upload_days"].default * DAY // SECOND),
            "`upload_days`",
        ),
        ("address of an upload", _hours(Limits().upload_seconds), "`limits.upload_seconds`"),
        ("files of reports", _days(REPORT_DAYS * DAY // SECOND), ""),
        ("address of a report", f"{LINK_SECONDS // 60} minutes", ""),
        ("first answer to an Idempotency-Key", _hours(REMEMBERED), ""),
        ("messages", _days(lane.queue_retention), "`timing.bulk.queue_retention`"),
        ("dead letters", _days(lane.dlq_retention), "`timing.bulk.dlq_retention`"),
        ("one message's invisibility, in all", _hours(VISIBILITY_CAP // SECOND), ""),
        ("log lines", f"{DEFAULTS['log_retention_days'].default} days", "`log_retention_days`"),
        ("records", "as long as you keep them", ""),
    ]


def _bytes(count: int) -> str:
    return f"{count:,} bytes"


def _days(seconds: int) -> str:
    count = seconds * SECOND // DAY
    return f"{count} day" if count == 1 else f"{count} days"


def _hours(seconds: int) -> str:
    count = seconds * SECOND // HOUR
    return f"{count} hour" if count == 1 else f"{count} hours"

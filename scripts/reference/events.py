"""docs/reference/events.md and webhooks.json: what Fairlane sends, and when."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import models_json_schema

from handlers.effects.event_bus import DETAIL_TYPE, SOURCE
from handlers.effects.notice import notice
from handlers.effects.webhook import FOR_GOOD, signature
from handlers.jobs.words.event import EventType
from handlers.jobs.words.job import EndReason, Lane, Waiting
from handlers.jobs.words.states import State
from handlers.web.openapi_build import REF, VERSION
from handlers.web.openapi_document import json_text

from .docstrings import table, under
from .examples import RAISE, load
from .kinds import kind
from .recording import Ear, recording

if TYPE_CHECKING:
    from collections.abc import Mapping

JobId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
Count = Annotated[int, Field(ge=0)]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid")


class ChangedRecord(_Sent):
    id: str
    version: int = Field(description="The record's version; a higher one is newer.")
    gone: bool = Field(description="Whether the record is deleted.")


class RecordsChanged(_Sent):
    """The records of one chunk that changed. None of their fields: a notice can be late."""

    key: str = Field(description="The same whenever this notice is sent.")
    job_id: JobId
    position: Count = Field(description="Records the job had done when the chunk began.")
    tenant: str
    operation: str
    records: list[ChangedRecord]


class EventJob(_Sent):
    """The job when the event happened. A field without a value is left out."""

    id: JobId
    tenant: str
    subject: str
    operation: str
    lane: Lane
    state: State
    end_reason: EndReason | None = None
    message: str | None = None
    waiting_reason: Waiting | None = None
    total: Count | None = None
    succeeded: Count
    failed: Count
    skipped: Count
    labels: dict[str, str] | None = None
    retry_of: JobId | None = None
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None


class JobEvent(_Sent):
    key: str = Field(description="The same whenever this event is sent.")
    event: EventType
    sequence: int = Field(description="An event of a job with a higher number is not older.")
    job: EventJob


HEADERS: Final = {
    "Idempotency-Key": "The `key` of the body. A receiver ignores one that it has seen.",
    "Fairlane-Timestamp": "Seconds since 1970. A receiver refuses one that is minutes old.",
    "Fairlane-Signature": "`v1=` and the HMAC-SHA256, in hex, of the timestamp, a full stop and "
    "the body's bytes: with the deployment's secret for `effects.webhook_url`, and with the key of "
    "the job's tenant for the address in a request.",
}
WEBHOOKS: Final[Mapping[str, tuple[type[BaseModel], str]]] = {
    "recordsChanged": (
        RecordsChanged,
        "A chunk of a job changed records: to `effects.webhook_url`.",
    ),
    "jobEvent": (JobEvent, "Something happened to a job: to the address in its `notify`."),
}
SECRET: Final = b"a secret of 16 or more"
PAGE: Final = """\
# Events and webhooks

Fairlane sends two kinds of message: *records changed*, for each chunk that a job commits, and
*events of jobs*. Both go to an EventBridge bus (`effects.event_bus`), records changed to one
webhook (`effects.webhook_url`), and events of a job to the address that its request names
(`notify`). [webhooks.json](webhooks.json) describes the requests as an OpenAPI document, and
[Receive webhooks](../how-to/webhooks.md) checks their signature in Python and TypeScript. Any
message can come twice, late or out of order: a receiver goes by `version`, and by the highest
`sequence` of a job.

## The request

Every webhook is a POST with these headers.

{headers}
A 2xx is success, and {for_good} refuse it for good. After any other answer, a redirect or none,
Fairlane sends it again, with growing waits.

## Records changed

{changed}
```http
{changed_example}
```

## Events of jobs

{jobs}
`event` is one of:

{kinds}
```http
{job_example}
```

### The job in an event

{job}
## On an event bus

The same bodies as `detail`, with the source `{source}`.

{bus}"""
FIELDS: Final = ("field", "value", "meaning")


def page() -> str:
    changed, ended = _heard()
    return PAGE.format(
        for_good=_for_good(),
        headers=table(("header", "what it is"), [(f"`{n}`", text) for n, text in HEADERS.items()]),
        changed=_fields(RecordsChanged) + "\nEach of `records`:\n\n" + _fields(ChangedRecord),
        changed_example=_request(changed),
        jobs=_fields(JobEvent),
        kinds=table(
            ("event", "when"),
            [(f"`{each.value}`", _when(each)) for each in EventType],
        ),
        job_example=_request(ended),
        job=_fields(EventJob),
        source=SOURCE,
        bus=table(
            ("detail-type", "body"),
            [
                (f"`{DETAIL_TYPE}`", "records changed"),
                *((f"`Job {each.capitalize()}`", f"`{each.value}`") for each in EventType),
            ],
        ),
    )


def document() -> dict[str, Any]:
    """The OpenAPI document of what a receiver gets."""
    models = [(model, "serialization") for model, _ in WEBHOOKS.values()]
    _, found = models_json_schema(models, ref_template=REF)  # type: ignore[arg-type]  # a mode each
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "What Fairlane sends",
            "version": VERSION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "webhooks": {n: _webhook(n, model, text) for n, (model, text) in WEBHOOKS.items()},
        "components": {"schemas": dict(sorted(found["$defs"].items()))},
    }


def webhooks_json() -> str:
    return json_text(document())


# --- parts ------------------------------------------------------------------------------------


def _webhook(name: str, model: type[BaseModel], summary: str) -> dict[str, Any]:
    return {
        "post": {
            "operationId": name,
            "summary": summary,
            "parameters": [
                {
                    "name": header,
                    "in": "header",
                    "required": True,
                    "schema": {"type": "string"},
                    "description": text,
                }
                for header, text in HEADERS.items()
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/json": {"schema": {"$ref": REF.format(model=model.__name__)}}
                },
            },
            "responses": {
                "2XX": {"description": "Taken."},
                "4XX": {"description": f"{_for_good()}: refused for good. Others: sent again."},
                "5XX": {"description": "Sent again."},
            },
        }
    }


def _fields(model: type[BaseModel]) -> str:
    schemas = model.model_json_schema()
    named = {"$defs": {name: _plain(each) for name, each in schemas.get("$defs", {}).items()}}
    rows = [
        (f"`{name}`", kind(schema, named), schema.get("description", ""))
        for name, schema in schemas["properties"].items()
    ]
    return table(FIELDS, rows)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Models have no heading of their own here."""
    return {"type": "object"} if "properties" in schema else schema


def _for_good() -> str:
    return ", ".join(str(int(status)) for status in sorted(FOR_GOOD))


def _when(event: EventType) -> str:
    return under(EventType).get(event.name, "The job has ended: `state` says how.")


def _heard() -> tuple[str, str]:
    """The notice and the last event of a small job."""
    ear = Ear()
    with recording(ear) as api:
        load(api)
        body = {
            "operation": "adjust_number",
            "subject": "products",
            "params": RAISE,
            "ids": ["sku-1", "sku-2"],
        }
        api.call("POST", "/v1/jobs", body)
        api.work(Lane.SMALL)
    [batch] = ear.batches
    return notice(batch), ear.events[-1].detail


def _request(body: str) -> str:
    stamp = "1700000001"
    found: dict[str, Any] = json.loads(body)
    return "\n".join(
        (
            "POST /your/path",
            "Content-Type: application/json",
            f"Idempotency-Key: {found['key']}",
            f"Fairlane-Timestamp: {stamp}",
            f"Fairlane-Signature: {signature(SECRET, stamp, body.encode())}",
            "",
            json.dumps(found, indent=2),
        )
    )

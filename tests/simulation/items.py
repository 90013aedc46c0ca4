"""Items of the control table by their attributes, as the simulation's own books read them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.words.writes import Key

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Item

OVER: Final = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})
DONE: Final = OVER | {"SETTLING"}
"""States of jobs that hold neither subject nor slot."""
WORKED_ON: Final = frozenset({"RUNNING", "CANCELLING", "PAUSING"})


def needs_no_message(job: Item) -> bool:
    if job["state"] in OVER:
        return not job.get("cleanup")
    return job["state"] in {"PAUSED", "SETTLING"} or held(job)


def held(job: Item) -> bool:
    return job["state"] == "QUEUED" and job.get("waiting_reason") == "tenant_limit"


def lease_key(tenant: str, subject: str) -> Key:
    return Key(f"SUBJECT#{tenant}#{subject}", "LEASE")


def slots_key(tenant: str, lane: str) -> Key:
    return Key(f"TENANT#{tenant}", f"SLOTS#{lane}")


def int_of(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name, 0)
    assert isinstance(value, int)
    return value


def place_in_source(job: Item) -> tuple[int, str]:
    """The job's cursor: a number, or the id after which a query goes on."""
    cursor = job["cursor"]
    return (0, json.loads(cursor)) if isinstance(cursor, str) else (int_of(job, "cursor"), "")


def short(id_: str) -> str:
    return id_[-6:]


def number_of(job: Item) -> int:
    """Which request made the job."""
    labels = job["labels"]
    assert isinstance(labels, Mapping)
    return int(str(labels["request"]))

"""A request and its answer for each route, recorded from the API's function."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from handlers.jobs.words.job import Lane

from .recording import TENANT, Ear, Exchange, Recording, recording

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handlers.jobs.words.operation import Fields

RAISE: Final = {"field": "price", "add": 1}


@cache
def examples() -> Mapping[str, Exchange]:
    """By the route's name."""
    with recording() as api:
        load(api)
        shown = _of_one_job(api) | _of_a_job_with_failures(api) | _of_a_deployment(api)
    ear = Ear(down=True)
    with recording(ear) as api:
        load(api)
        return {**shown, "replay_effects": _of_a_sink_that_was_down(api, ear)}


def load(api: Recording) -> None:
    """The records that the examples change."""
    records: Mapping[str, Fields] = {
        "sku-1": {"price": 10, "version": 1},
        "sku-2": {"price": 12, "version": 1},
        "sku-3": {"name": "no price", "version": 1},
    }
    api.world.records.load(TENANT, records)


def _of_one_job(api: Recording) -> dict[str, Exchange]:
    created = api.call(
        "POST",
        "/v1/jobs",
        {
            "operation": "adjust_number",
            "subject": "products",
            "params": RAISE,
            "ids": ["sku-1", "sku-2", "sku-1"],
            "labels": {"team": "pricing"},
        },
    )
    at = created.answered["Location"]
    shown = {
        "create_job": created,
        "get_job": api.call("GET", at),
        "pause_job": api.call("POST", f"{at}/pause"),
        "resume_job": api.call("POST", f"{at}/resume"),
        "list_lanes": api.call("GET", "/v1/lanes"),
        "get_subject": api.call("GET", "/v1/subjects", query={"name": "products"}),
        "cancel_job": api.call("POST", f"{at}/cancel"),
    }
    for _ in range(2):  # the message of before the pause, and that of the resume
        api.work(Lane.SMALL)
    return shown


def _of_a_job_with_failures(api: Recording) -> dict[str, Exchange]:
    body = {
        "operation": "adjust_number",
        "subject": "products",
        "params": RAISE,
        "ids": ["sku-1", "sku-3"],
        "tolerated_failure_percent": 50,
    }
    at = api.call("POST", "/v1/jobs", body).answered["Location"]
    api.work(Lane.SMALL)
    return {
        "list_jobs": api.call("GET", "/v1/jobs", query={"state": "SUCCEEDED", "limit": "20"}),
        "list_items": api.call("GET", f"{at}/items", query={"outcome": "failed"}),
        "create_report": api.call("POST", f"{at}/report", query={"format": "jsonl"}),
        "retry_job": api.call("POST", f"{at}/retry", query={"failed_only": "true"}),
    }


def _of_a_sink_that_was_down(api: Recording, ear: Ear) -> Exchange:
    body = {"operation": "adjust_number", "subject": "products", "params": RAISE, "ids": ["sku-1"]}
    at = api.call("POST", "/v1/jobs", body).answered["Location"]
    api.work(Lane.SMALL)
    api.recover()
    ear.down = False
    return api.call("POST", f"{at}/effects/replay")


def _of_a_deployment(api: Recording) -> dict[str, Exchange]:
    upload = {"format": "csv", "column": "sku", "gzip": True}
    return {
        "create_upload": api.call("POST", "/v1/uploads", upload),
        "list_operations": api.call("GET", "/v1/operations"),
        "openapi": api.call("GET", "/v1/openapi.json"),
    }

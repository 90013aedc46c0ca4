"""Jobs as clients see them."""

from __future__ import annotations

from typing import Any

import pytest

from handlers.jobs.words.exact_json import exact_json
from handlers.jobs.words.job import EndReason, Job, Lane, Waiting
from handlers.jobs.words.states import State
from handlers.web.addresses import location
from handlers.web.views import is_job_id, job_view, progress, timestamp

NOW = 1_700_000_100_000
SECRET = ("tenant", "params", "ids", "fence", "worker", "receipt", "idempotency", "payload")


def job(**more: Any) -> Job:
    values: dict[str, Any] = {
        "id": "0" * 32,
        "tenant": "acme",
        "subject": "products",
        "operation": "adjust_number",
        "params": "{}",
        "lane": Lane.SMALL,
        "state": State.QUEUED,
        "total": 4,
        "fence": 1,
        "created_at": 1_700_000_000_007,
    }
    return Job(**{**values, **more})


def view(of: Job) -> dict[str, Any]:
    return job_view(of, NOW)


@pytest.mark.parametrize(
    ("position", "total", "expected"),
    [(0, 4, 0), (1, 4, 25), (1, 3, 33), (2, 3, 66), (3, 3, 100), (999, 1000, 99), (0, 0, 100)],
)
def test_percent_is_100_only_at_the_end(position: int, total: int, expected: int) -> None:
    shown = progress(job(position=position, total=total), NOW)
    assert shown is not None
    assert shown["percent"] == expected


@pytest.mark.parametrize(
    ("at", "expected"),
    [
        (None, None),
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
        (4_102_444_800_000, "2100-01-01T00:00:00.000Z"),
    ],
)
def test_times_are_utc_with_milliseconds(at: int | None, expected: str | None) -> None:
    assert timestamp(at) == expected


def test_what_is_absent_is_left_out_and_zero_is_shown() -> None:
    shown = view(job())
    assert "finished_at" not in shown
    assert "end_reason" not in shown
    assert "labels" not in shown
    assert (shown["succeeded"], shown["failed"], shown["skipped"]) == (0, 0, 0)


def test_what_is_nobodys_business_is_never_shown() -> None:
    full = job(ids=("a",), payload="ids/1", worker="host/1", receipt="r", idempotency="h")
    assert not set(SECRET) & view(full).keys()


def test_c85_an_address_is_shown_without_its_query() -> None:
    shown = view(job(notify="https://example.org/told?token=secret"))["request"]
    assert shown["notify"] == {"url": "https://example.org/told"}


def test_c85_a_query_is_shown_exactly_and_without_the_ids_that_it_found() -> None:
    query = '{"all":[{"field":"price","op":"<","value":0.10}]}'
    shown = view(job(query=query, ids=("a",)))["request"]
    assert (exact_json(shown["query"]), "ids" in shown) == (query, False)


def test_why_it_ended_or_waits_is_shown_in_words_that_stay() -> None:
    ended = job(state=State.FAILED, end_reason=EndReason.TOO_MANY_FAILED, message="sorry")
    assert view(ended).items() >= {
        ("state", "FAILED"),
        ("end_reason", "too_many_failed"),
        ("message", "sorry"),
    }
    held = job(waiting_reason=Waiting.TENANT_LIMIT)
    assert view(held)["waiting_reason"] == "tenant_limit"


@pytest.mark.parametrize("reason", [*EndReason, *Waiting])
def test_reasons_are_plain_text(reason: EndReason | Waiting) -> None:
    field = "end_reason" if isinstance(reason, EndReason) else "waiting_reason"
    assert type(view(job(**{field: reason}))[field]) is str


def test_dwell_counts_from_admission_not_from_creation() -> None:
    waited = job(created_at=0, admitted_at=500, started_at=700)
    assert view(waited)["dwell_ms"] == 200
    assert "dwell_ms" not in view(job(started_at=700))


@pytest.mark.parametrize("value", ["0" * 32, "0123456789abcdef" * 2])
def test_a_job_id(value: str) -> None:
    assert is_job_id(value)
    assert location(value, "") == view(job(id=value))["url"]


@pytest.mark.parametrize(
    "value",
    ["", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "0" * 32 + "\n", "\uff10" * 32, None, 7, b"0"],
)
def test_no_job_id(value: object) -> None:
    assert not is_job_id(value)

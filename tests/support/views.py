"""A job as the API shows it, for tests of what is made of it."""

from __future__ import annotations

from typing import Any, Final

from fairlane_client import JobView

JOB: Final[dict[str, Any]] = {
    "id": "j1",
    "url": "/v1/jobs/j1",
    "operation": "set_fields",
    "subject": "products",
    "lane": "small",
    "state": "QUEUED",
    "selection": "ids",
    "total": 2,
    "duplicates": 0,
    "succeeded": 0,
    "failed": 0,
    "skipped": 0,
    "attempt": 0,
    "created_at": "2026-01-02T03:04:05.678Z",
}

REPORT: Final[dict[str, Any]] = {
    "url": "https://bucket.example/x",
    "expires_at": "2026-01-02T03:04:05.678Z",
    "format": "csv",
    "outcome": "all",
    "count": 1,
    "bytes": 2,
    "sha256": "0" * 64,
    "state": "SUCCEEDED",
    "complete": True,
}


def job_view(id_: str = "j1", **changes: object) -> JobView:
    return JobView.model_validate({**JOB, "id": id_, "url": f"/v1/jobs/{id_}", **changes})

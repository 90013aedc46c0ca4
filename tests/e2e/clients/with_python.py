# ruff: noqa: INP001  a program of its own, run beside the client that was made for it
"""What a team does with the client that openapi-python-client makes.

``python with_python.py URL TOKEN IDS ABSENT MANY`` prints what it saw as JSON. The arguments after
the token are JSON: ids of records, ids without one, and so many ids that the job is held.
"""

from __future__ import annotations

import json
import sys
import time

from made_client import AuthenticatedClient
from made_client.api.jobs import cancel_job, create_job, get_job, list_items, list_jobs
from made_client.models import (
    ItemPage,
    JobAnswer,
    JobPage,
    JobRequest,
    JobRequestParams,
    ListItemsOutcome,
    ListJobsStateItem,
    State,
)

ENDED = {State.SUCCEEDED, State.FAILED, State.CANCELLED}


def main(url: str, token: str, *given: str) -> None:
    ids, absent, many = map(json.loads, given)
    client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)

    def create(subject: str, ids: list[str]) -> JobAnswer:
        params = JobRequestParams.from_dict({"field": "elevation", "add": 1})
        body = JobRequest(operation="adjust_number", subject=subject, params=params, ids=ids)
        answer = create_job.sync_detailed(
            client=client, body=body, idempotency_key=f"{subject} {len(ids)}"
        )
        assert answer.status_code == 202, answer
        assert answer.headers["location"].endswith(answer.parsed.id)
        return answer.parsed

    def wait(job: JobAnswer) -> JobAnswer:
        while True:
            now = get_job.sync(job_id=job.id, client=client)
            assert isinstance(now, JobAnswer)
            if now.state in ENDED:
                return now
            time.sleep(0.2)

    made = create("python", [*ids, *absent])
    again = create("python", [*ids, *absent])
    ended = wait(made)
    found = list_jobs.sync(
        client=client, subject="python", state=[ListJobsStateItem.SUCCEEDED], limit=10
    )
    assert isinstance(found, JobPage)
    skipped = list_items.sync(job_id=made.id, client=client, outcome=ListItemsOutcome.SKIPPED)
    assert isinstance(skipped, ItemPage)
    held = create("python", many)
    cancel_job.sync(job_id=held.id, client=client)
    print(  # noqa: T201  the answer
        json.dumps(
            {
                "same": again.id == made.id,
                "ended": [ended.state.value, ended.succeeded, ended.skipped],
                "listed": [job.id == made.id for job in found.jobs],
                "items": sorted(item.id for item in skipped.items),
                "held": held.state.value,
                "cancelled": wait(held).state.value,
            }
        )
    )


main(*sys.argv[1:])

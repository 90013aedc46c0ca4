"""Finding jobs: by subject, and a rare state among very many."""

from __future__ import annotations

from typing import Any, Final

import pytest

from handlers.jobs.storage import control_table
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Put
from handlers.testing.world import MemoryWorld, memory_world
from handlers.web import job_list
from handlers.web.job_list import PARAMETERS, jobs_page
from handlers.web.query import Query
from tests.support.jobs import TENANT

MANY: Final = 4000
RARE: Final = 7
"""Its number among them: one of the oldest."""


def a_job(number: int, **more: Any) -> Job:
    values = {
        "id": f"{number:012x}{0:020x}",
        "tenant": TENANT,
        "subject": "products",
        "operation": "adjust_number",
        "params": "{}",
        "lane": Lane.SMALL,
        "state": State.SUCCEEDED,
        "total": 1,
        "fence": 1,
        "created_at": number,
    }
    return Job(**{**values, **more})


@pytest.fixture(scope="module")
def world() -> MemoryWorld:
    """Very many jobs of which one is like no other."""
    made = memory_world()
    rare = {"state": State.FAILED, "subject": "rare", "labels": {"team": "a"}, "operation": "o"}
    jobs = [a_job(n, **(rare if n == RARE else {})) for n in range(MANY)]
    for at in range(0, MANY, 100):
        rows = [
            Put(control_table.job_key(job.id), control_table.job_item(made, job))
            for job in jobs[at : at + 100]
        ]
        made.store.transact("load", rows)
    return made


def listed(world: MemoryWorld, **query: str) -> dict[str, Any]:
    event = {"queryStringParameters": query}
    return jobs_page(world, TENANT, Query(event, *PARAMETERS), "")


@pytest.mark.parametrize(
    "query", [{"state": "FAILED"}, {"subject": "rare"}, {"label": "team:a"}, {"operation": "o"}]
)
def test_c92_what_is_rare_among_very_many_is_on_the_first_page(
    world: MemoryWorld, query: dict[str, str]
) -> None:
    page = listed(world, **query)
    assert [job["id"] for job in page["jobs"]] == [a_job(RARE).id]
    assert "next" not in page


def test_c92_a_page_looks_at_a_bounded_number_of_jobs(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_list, "READ", 100)
    monkeypatch.setattr(job_list, "MOST_LOOKED_AT", 1000)
    found: list[int] = []
    page: dict[str, Any] = {"next": None}
    while "next" in page:
        at = {} if page["next"] is None else {"page": page["next"]}
        page = listed(world, subject="rare", **at)
        found.append(len(page["jobs"]))
    # The last page is empty when the one before it has looked at the very last job.
    assert found[:4] == [0, 0, 0, 1]
    assert len(found) <= 5


def test_c92_a_page_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = memory_world(tick=job_list.MAX_LOOK // 2 + 1)
    for n in range(3):
        job = a_job(n)
        item = control_table.job_item(slow, job)
        slow.store.transact("load", [Put(control_table.job_key(job.id), item)])
    monkeypatch.setattr(job_list, "READ", 1)
    page = listed(slow, subject="rare")
    assert page["jobs"] == []
    assert "next" in page


def test_c92_a_list_without_a_filter_reads_no_more_than_it_shows(
    world: MemoryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[int] = []
    query = world.store.query

    def counting(*args: Any, limit: int, **more: Any) -> Any:
        limits.append(limit)
        return query(*args, limit=limit, **more)

    monkeypatch.setattr(world.store, "query", counting)
    assert len(listed(world, limit="3")["jobs"]) == 3
    assert limits == [3]

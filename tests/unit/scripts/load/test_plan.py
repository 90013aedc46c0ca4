"""The load covers every record once, and its two kinds of jobs stay apart."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest

from handlers.jobs.words.limits import Limits
from scripts.load.plan import Load, plan
from scripts.local.airports import airports_by_tenant


@pytest.fixture(scope="module")
def load() -> Load:
    return plan({tenant: list(ids) for tenant, ids in airports_by_tenant().items()})


def test_every_record_is_in_exactly_one_bulk_job_of_each_pass(load: Load) -> None:
    listed = Counter((job.tenant, id_) for job in load.bulk for id_ in job.ids)
    every = {(tenant, id_) for tenant, ids in airports_by_tenant().items() for id_ in ids}
    assert listed.keys() == every
    assert set(listed.values()) == {2}


def test_a_pass_begins_when_all_of_the_last_one_is_ahead_of_it(load: Load) -> None:
    """So that no two jobs that run at once have a record in common."""
    half = len(load.bulk) // 2
    first, second = load.bulk[:half], load.bulk[half:]
    assert [job.ids for job in first] == [job.ids for job in second]


def test_each_kind_goes_to_its_lane(load: Load) -> None:
    limit = Limits().small_max_items
    assert min(len(job.ids) for job in load.bulk) > limit
    assert max(len(job.ids) for job in load.small) <= limit


def test_no_two_jobs_have_the_same_subject(load: Load) -> None:
    subjects = Counter((job.tenant, job.subject) for job in (*load.bulk, *load.small, *load.idle))
    assert set(subjects.values()) == {1}


def test_small_jobs_belong_to_tenants_whose_bulk_jobs_come_last(load: Load) -> None:
    small = {job.tenant for job in load.small}
    first = {job.tenant for job in load.bulk[:4]}
    assert len(small) > 1
    assert small.isdisjoint(first)


def test_parts_are_no_larger_than_asked_for() -> None:
    ids = [f"{number:03}" for number in range(10)]
    sizes = [len(job.ids) for job in plan({"a": ids}, part=4, passes=1, small_jobs=1).bulk]
    assert sizes == [3, 3, 4]


def test_a_tenant_with_few_records_lists_none_twice_in_a_job() -> None:
    [job] = plan({"a": ["1", "2", "3"]}, small_jobs=1, small_items=5).small
    assert sorted(job.ids) == ["1", "2", "3"]


def test_spare_bulk_jobs_are_endless_and_on_subjects_of_their_own(load: Load) -> None:
    more = list(islice(load.spare(), 3 * len(load.once)))
    assert len(more) == 3 * len(load.once)
    assert [job.ids for job in more[: len(load.once)]] == [job.ids for job in load.once]
    subjects = Counter((job.tenant, job.subject) for job in (*load.bulk, *more))
    assert set(subjects.values()) == {1}

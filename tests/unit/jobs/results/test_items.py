"""The results of a job, record by record and page by page."""

from __future__ import annotations

import pytest

from handlers.jobs.results.items import ItemOutcome, Mark, Unfinished, item_page, item_results
from handlers.jobs.storage import control_table
from handlers.jobs.words.writes import Put
from tests.support.results import a_job

FAILED = ItemOutcome.FAILED


def test_each_result_is_listed_once_in_the_order_it_was_settled() -> None:
    world, job = a_job(failing=7, chunk=3)
    found = list(item_results(world, job, FAILED, lambda: False))
    assert [result.id for result in found] == [f"r{n:04}" for n in range(7)]
    assert {result.outcome for result in found} == {FAILED}
    assert not list(item_results(world, job, ItemOutcome.SKIPPED, lambda: False))


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_hold_each_result_once_whatever_their_length(limit: int) -> None:
    world, job = a_job(failing=7, chunk=3)
    ids: list[str] = []
    mark: Mark | None = Mark()
    while mark is not None:
        page = item_page(world, job, FAILED, mark, limit=limit, max_bytes=10_000)
        assert len(page.found) <= limit
        ids += [result.id for result in page.found]
        mark = page.next
    assert ids == [f"r{n:04}" for n in range(7)]


def test_a_page_is_bounded_in_bytes_and_never_empty_while_there_is_one() -> None:
    world, job = a_job(failing=3, chunk=3)
    page = item_page(world, job, FAILED, Mark(), limit=100, max_bytes=1)
    assert len(page.found) == 1
    assert page.next is not None


def test_rows_of_chunks_after_the_job_was_read_are_not_listed() -> None:
    world, job = a_job(failing=2, chunk=3)
    later = control_table.outcome_key(job.id, job.position)
    world.store.transact("later", [Put(later, {"failed": [{"id": "x", "reason": "new"}]})])
    assert len(list(item_results(world, job, FAILED, lambda: False))) == 2


def test_a_listing_that_is_out_of_time_says_so() -> None:
    world, job = a_job(failing=7, chunk=3)
    with pytest.raises(Unfinished):
        list(item_results(world, job, FAILED, lambda: True))


def test_a_refused_record_says_which_sink_refused_it() -> None:
    world, job = a_job(failing=1, chunk=3)
    entry = {"sink": "index", "id": "a", "reason": "too large"}
    key = control_table.refused_key(job.id, 0, 1)
    world.store.transact("refused", [Put(key, {"refused": [entry]})])
    [result] = item_results(world, job, ItemOutcome.REFUSED, lambda: False)
    assert (result.id, result.reason, result.sink) == ("a", "too large", "index")


def test_a_job_without_results_has_an_empty_page() -> None:
    world, job = a_job(failing=0, chunk=3)
    page = item_page(world, job, FAILED, Mark(), limit=1, max_bytes=1)
    assert (list(page.found), page.next) == ([], None)

"""Keys and items of the control table."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.storage import control_table
from handlers.jobs.words.errors import Undecodable
from handlers.jobs.words.job import Waiting
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Index
from handlers.testing.world import memory_world
from tests.support.jobs import fill, new_job, now

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(st.tuples(TEXT, TEXT), st.tuples(TEXT, TEXT))
def test_no_two_subjects_share_a_lease(one: tuple[str, str], other: tuple[str, str]) -> None:
    same = control_table.lease_key(*one) == control_table.lease_key(*other)
    assert same is (one == other)


def test_rows_of_a_job_sort_as_they_came() -> None:
    positions = [0, 9, 10, 99_999, 100_000]
    failed = partial(control_table.outcome_key, "j", "failed")
    for key in (failed, partial(control_table.effect_key, "j")):
        names = [key(position).sk for position in positions]
        assert names == sorted(names)


def test_a_kind_is_spread_over_its_shards_and_no_further() -> None:
    found = {str(control_table.due("LEASE", f"j{n}", 1, 4)["due_pk"]) for n in range(100)}
    assert found == {control_table.due_partition("LEASE", shard) for shard in range(4)}


def test_a_job_comes_back_from_its_item_as_it_was_stored() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 3), labels={"team": "a"})
    assert control_table.job_of(control_table.job_item(world, job)) == job == now(world, job)


def test_only_a_held_job_is_in_the_line_and_only_an_ended_one_goes_one_day() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    waiting = job.model_copy(update={"waiting_reason": Waiting.TENANT_LIMIT})
    ended = job.model_copy(update={"state": State.SUCCEEDED, "finished_at": 5000})
    assert {"held_pk", "expires_at_seconds"}.isdisjoint(control_table.job_item(world, job))
    assert control_table.beside_fields(world, waiting)["held_sk"] == job.id
    beside = control_table.beside_fields(world, ended)
    assert beside["expires_at_seconds"] == 5 + world.timing.history


def test_only_a_job_that_left_something_is_looked_at_by_recovery() -> None:
    world = memory_world()
    job = new_job(world, fill(world, 1))
    left = control_table.beside_fields(world, job.model_copy(update={"cleanup": True}))
    assert left[Index.DUE.sk] == job.created_at
    assert Index.DUE.sk not in control_table.beside_fields(world, job)


def test_a_word_is_stored_as_plain_text() -> None:
    stored = control_table.stored({"state": State.QUEUED, "ids": ("a",), "none": None})
    assert stored == {"state": "QUEUED", "ids": ["a"]}
    assert type(stored["state"]) is str


def test_what_is_no_job_says_which_attributes_are_not() -> None:
    world = memory_world()
    item = {**control_table.job_item(world, new_job(world, fill(world, 1))), "fence": "x"}
    with pytest.raises(Undecodable, match="fence"):
        control_table.job_of(item)
    with pytest.raises(Undecodable):
        control_table.lease_of({"job_id": "j"})


def test_the_readable_part_has_what_can_be_read_and_never_wrong_counts() -> None:
    world = memory_world()
    item = control_table.job_item(world, new_job(world, fill(world, 1)))
    failed = {"state": "FAILED"}
    part = control_table.readable_part({**item, "waiting_reason": "new"}, failed)
    assert (part.state, part.waiting_reason) == (State.FAILED, None)
    with pytest.raises(Undecodable, match="failed"):
        control_table.readable_part({**item, "failed": "many"}, failed)


@pytest.mark.parametrize(
    ("change", "new"),
    [
        ({"state": "DOZING"}, True),
        ({"traversal": "sideways", "lane": "fast"}, True),
        ({"state": 5}, False),
        ({"fence": "x"}, False),
        ({"state": "DOZING", "fence": "x"}, False),
    ],
)
def test_only_words_can_be_of_a_newer_version(change: dict[str, object], *, new: bool) -> None:
    world = memory_world()
    item = control_table.job_item(world, new_job(world, fill(world, 1)))
    with pytest.raises(Undecodable) as raised:
        control_table.job_of({**item, **change})  # type: ignore[dict-item]  # no job's values
    assert raised.value.new_words is new

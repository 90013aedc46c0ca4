"""The order of stored lists."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.selection.permuted import PermutedIds, distinct
from handlers.jobs.selection.walk_order import permuted
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.testing.world import memory_world
from tests.support.jobs import fill, new_job, now, prices, run_next

IDS: Final = [f"r{number:05}" for number in range(2000)]
TEXTS: Final = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=200)


@given(TEXTS, st.text("0123456789abcdef", min_size=1, max_size=32))
def test_every_id_comes_once_and_in_the_order_of_the_seed(ids: list[str], seed: str) -> None:
    one = PermutedIds(iter(ids), seed)
    assert list(one) == permuted(set(ids), seed)
    assert (one.total, one.duplicates) == (len(set(ids)), len(ids) - len(set(ids)))


def test_without_it_the_ids_keep_their_order() -> None:
    ids = ["b", "a", "b", "c"]
    assert list(distinct(ids, "s", permute=False)) == ["b", "a", "c"]
    assert sorted(distinct(ids, "s", permute=True)) == ["a", "b", "c"]


@pytest.mark.parametrize("permute", [True, False])
def test_a_long_list_of_a_request_is_stored_in_that_order(permute: bool) -> None:  # noqa: FBT001
    world = memory_world(limits=Limits(small_max_items=10_000, permute_ids=permute))
    ids = [f"{id_}-{'x' * 60}" for id_ in IDS[:1000]]
    world.records.load("acme", {id_: {"price": 10, "version": 1} for id_ in ids})
    job = new_job(world, ids)
    stored = world.payloads.read(job.payload or "", 0, 10**7).decode().splitlines()
    expected = permuted(ids, job.id) if permute else ids
    assert stored == [f'"{id_}"' for id_ in expected]
    run_next(world)
    assert now(world, job).state is State.SUCCEEDED
    assert prices(world, ids) == {11}


def test_a_short_list_stays_as_the_client_sent_it() -> None:
    world = memory_world()
    ids = fill(world, 50)
    assert new_job(world, ids).ids == tuple(ids)

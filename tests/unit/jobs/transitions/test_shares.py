"""A tenant's share of the bulk lane in the store."""

from __future__ import annotations

import pytest

from handlers.jobs.storage.transaction import Rejected, execute
from handlers.jobs.transitions.shares import charge_share, read_share, set_weight
from handlers.jobs.words.turns import MAX_WEIGHT, Share
from handlers.testing.world import memory_world
from tests.support.jobs import TENANT


def test_a_share_that_was_never_charged_is_empty() -> None:
    assert read_share(memory_world(), TENANT) == Share()


def test_a_charge_is_written_once_from_one_reading() -> None:
    world = memory_world()
    first, second = Share(5, 100), Share(9, 200)
    execute(world, charge_share(TENANT, Share(), first))
    with pytest.raises(Rejected):
        execute(world, charge_share(TENANT, Share(), second))
    with pytest.raises(Rejected):
        execute(world, charge_share(TENANT, Share(6, 100), second))
    execute(world, charge_share(TENANT, first, second))
    assert read_share(world, TENANT) == second


def test_a_weight_lies_beside_what_was_used() -> None:
    world = memory_world()
    set_weight(world, TENANT, 3)
    execute(world, charge_share(TENANT, read_share(world, TENANT), Share(5, 100, weight=3)))
    assert read_share(world, TENANT) == Share(5, 100, weight=3)
    set_weight(world, TENANT, None)
    assert read_share(world, TENANT) == Share(5, 100)


@pytest.mark.parametrize("weight", [0, -1, MAX_WEIGHT + 1])
def test_a_weight_out_of_range_is_refused(weight: int) -> None:
    with pytest.raises(ValueError, match=f"the weight is {weight}"):
        set_weight(memory_world(), TENANT, weight)

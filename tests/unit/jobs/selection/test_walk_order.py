"""The order of a walk over a stored list."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from handlers.jobs.selection.walk_order import permuted, place_of

IDS: Final = [f"r{number:05}" for number in range(2000)]


def test_sorted_ids_do_not_stay_neighbours() -> None:
    """In the list's own order, each chunk of 96 lies within a twentieth of all keys."""
    order = [IDS.index(id_) for id_ in permuted(IDS, "a job")]
    neighbours = sum(abs(a - b) == 1 for a, b in pairwise(order))
    assert neighbours < 20
    for at in range(0, len(order) - 96, 96):
        chunk = order[at : at + 96]
        assert max(chunk) - min(chunk) > len(IDS) // 2


def test_another_job_has_another_order() -> None:
    assert permuted(IDS, "a job") != permuted(IDS, "another job")
    assert permuted(IDS, "a job") == permuted(reversed(IDS), "a job")
    assert place_of("7", "s") != place_of("07", "s")

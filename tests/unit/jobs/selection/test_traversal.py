"""Live where nothing moves, and never because somebody asked for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.selection.traversal import Asked, UnsafeTraversal, choose_traversal
from handlers.jobs.words.job import Traversal

FIELDS = st.frozensets(st.sampled_from(["a", "b", "c", "id"]), max_size=3)


@given(FIELDS, FIELDS, FIELDS)
def test_what_the_operation_writes_decides(
    writes: frozenset[str], selects: frozenset[str], sorts: frozenset[str]
) -> None:
    moving = writes & (selects | sorts)
    chosen = choose_traversal(Asked.AUTO, writes=writes, selects=selects, sorts=sorts)
    assert chosen.traversal is (Traversal.SNAPSHOT if moving else Traversal.LIVE)
    assert all(field in chosen.why for field in moving)
    listed = choose_traversal(Asked.SNAPSHOT, writes=writes, selects=selects, sorts=sorts)
    assert listed.traversal is Traversal.SNAPSHOT
    if moving:
        with pytest.raises(UnsafeTraversal) as caught:
            choose_traversal(Asked.LIVE, writes=writes, selects=selects, sorts=sorts)
        assert caught.value.fields == moving
    else:
        live = choose_traversal(Asked.LIVE, writes=writes, selects=selects, sorts=sorts)
        assert live.traversal is Traversal.LIVE

"""Dropping repeats, exactly and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.selection.dedupe import DistinctIds


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), max_size=200))
def test_repeats_are_dropped_exactly_and_in_order(ids: list[str]) -> None:
    distinct = DistinctIds(iter(ids))
    assert list(distinct) == list(dict.fromkeys(ids))
    assert (distinct.total, distinct.duplicates) == (len(set(ids)), len(ids) - len(set(ids)))

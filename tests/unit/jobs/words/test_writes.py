"""Conditions on what was read, and the names of the indexes."""

from __future__ import annotations

from handlers.jobs.words.writes import Equals, Index, Missing, as_stored


def test_as_read_holds_for_a_value_for_none_and_for_nothing() -> None:
    item = {"tries": 0, "receipt": None}
    assert as_stored(item, "tries") == Equals("tries", 0)
    assert as_stored(item, "receipt") == Equals("receipt", None)
    assert as_stored(item, "parked") == Missing("parked")


def test_no_two_indexes_share_an_attribute() -> None:
    names = [name for index in Index for name in (index.pk, index.sk)]
    assert names[:2] == ["due_pk", "due_sk"]
    assert len(set(names)) == len(names)

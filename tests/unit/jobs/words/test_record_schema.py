"""How a team's record table names what Fairlane needs."""

from __future__ import annotations

import pytest

from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import UNUSABLE, RecordSchema, ReservedField
from handlers.jobs.words.writes import Differs, Equals, Present

SCHEMA = RecordSchema(tenant="owner", id="sku", version="rev", last_job_id="job")


@pytest.mark.parametrize(
    ("rev", "version"), [(3, 3), (None, UNUSABLE), ("3", UNUSABLE), (True, UNUSABLE)]
)
def test_a_version_is_a_whole_number(rev: int | str | None, version: int) -> None:
    record = SCHEMA.record("acme", "a", {"owner": "acme", "sku": "a", "rev": rev, "price": 1})
    assert (record.version, record.fields) == (version, {"price": 1})


def test_a_record_without_a_version_has_version_0_and_must_still_exist() -> None:
    record = SCHEMA.record("acme", "a", {"price": 1})
    assert record.version == 0
    assert Present("sku") in SCHEMA.remove(record, "j").when


def test_a_change_raises_the_version_and_leaves_the_mark_of_its_job() -> None:
    write = SCHEMA.change(Record("acme", "a", 3, {}), {"price": 2, "old": None}, "j")
    assert (write.key.pk, write.key.sk) == ("acme", "a")
    assert (write.set, write.remove) == ({"price": 2, "rev": 4, "job": "j"}, ("old",))
    assert write.when == (Equals("rev", 3), Differs("job", "j"))


@pytest.mark.parametrize("name", ["owner", "sku", "rev", "job"])
def test_no_operation_writes_what_fairlane_needs(name: str) -> None:
    with pytest.raises(ReservedField, match=name):
        SCHEMA.change(Record("acme", "a", 3, {}), {name: 1}, "j")

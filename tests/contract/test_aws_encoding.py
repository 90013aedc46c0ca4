"""Writes of records are encoded when they are planned, not while their commit is awaited."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from handlers.aws import write_encoding
from handlers.aws.write_encoding import Calls
from handlers.jobs.words.errors import Refused, Why
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.stored_values import MAX_ITEM_BYTES
from handlers.jobs.words.writes import Delete, Key, Table, Update
from tests.support import aws

if TYPE_CHECKING:
    from handlers.jobs.words.writes import Value, Write

RECORD: Final = Record("acme", "1", 1, {"n": 1})


class Encoded(Exception):
    """Something was encoded that had been already."""


def of(write: Write) -> write_encoding.Call:
    return Calls({Table.CONTROL: aws.CONTROL, Table.RECORDS: aws.RECORDS}, RecordSchema()).of(write)


def planned(*, removing: bool) -> Update | Delete:
    records = aws.record_store(aws.clients())
    write = records.remove(RECORD, "J") if removing else records.change(RECORD, {"n": 2}, "J")
    assert isinstance(write, Update | Delete)
    return write


@pytest.mark.parametrize("removing", [False, True])
def test_a_planned_write_is_not_encoded_again(
    monkeypatch: pytest.MonkeyPatch, *, removing: bool
) -> None:
    schema = RecordSchema()
    plain = schema.remove(RECORD, "J") if removing else schema.change(RECORD, {"n": 2}, "J")
    write, expected = planned(removing=removing), of(plain)

    def encode(_: object) -> None:
        raise Encoded

    monkeypatch.setattr(write_encoding, "encode", encode)
    assert of(write) == expected
    with pytest.raises(Encoded):
        of(plain)


@pytest.mark.parametrize("removing", [False, True])
def test_a_changed_copy_is_encoded_anew(*, removing: bool) -> None:
    write = planned(removing=removing)
    assert "ConditionExpression" in of(write)
    assert "ConditionExpression" not in of(replace(write, when=()))


def test_what_was_encoded_for_another_table_is_encoded_anew() -> None:
    write = RecordSchema().change(RECORD, {"n": 2}, "J")
    elsewhere = Calls({Table.RECORDS: "other"}, RecordSchema()).ahead(write)
    assert of(elsewhere) == of(write)


@pytest.mark.parametrize("bad", ["x" * MAX_ITEM_BYTES, "\ud800"], ids=["large", "surrogate"])
def test_what_cannot_be_encoded_is_refused_by_its_transaction(bad: Value) -> None:
    made = aws.clients()
    change = aws.record_store(made).change(RECORD, {"a": bad}, "J")
    with pytest.raises(Refused) as refused:
        aws.job_store(made).transact("change", [Update(Key("p", "s"), set={"a": 1}), change])
    assert [reason and reason.why for reason in refused.value.reasons] == [None, Why.INVALID]

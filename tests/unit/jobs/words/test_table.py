"""A lookup table: rows that nobody can change, and a bounded number of them in memory."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from handlers.jobs.words.table import TABLES, Table, TableCache, TableNotRead
from handlers.operations.parameters import Parameters

ID = "0" * 32


class Some(Parameters):
    rates: Table
    more: Table | None = None


def test_rows_are_found_by_their_keys_and_stay_as_they_are() -> None:
    table = Table({"EUR": {"rate": 2}})
    assert (table["EUR"]["rate"], table.get("USD"), len(table), list(table)) == (
        2,
        None,
        1,
        ["EUR"],
    )
    row: Any = table["EUR"]
    with pytest.raises(TypeError):
        row["rate"] = 3


def test_a_request_names_an_upload_and_nothing_else() -> None:
    for wrong in ({}, {"upload_id": "x"}, {"upload_id": ID, "rows": {}}, ID, {"upload_id": 7}):
        with pytest.raises(ValidationError):
            Some.model_validate({"rates": wrong})
    schema = Some.model_json_schema()["properties"]["rates"]
    assert schema["required"] == ["upload_id"]
    assert schema["additionalProperties"] is False
    assert "lookup table" in schema["description"]


def test_a_table_that_was_not_read_cannot_be_looked_into() -> None:
    named = Some.model_validate({"rates": {"upload_id": ID}}).rates
    for look in (lambda: named["EUR"], lambda: len(named), lambda: list(named)):
        with pytest.raises(TableNotRead):
            look()


def test_whoever_has_the_tables_reads_them() -> None:
    read = {TABLES: {ID: Table({"EUR": {}})}.__getitem__}
    assert list(Some.model_validate({"rates": {"upload_id": ID}}, context=read).rates) == ["EUR"]


def test_the_tables_that_were_asked_for_last_stay() -> None:
    cache = TableCache()
    tables = {name: Table({name: {}}) for name in "abc"}
    cache.put("a", tables["a"], 4, most=10)
    cache.put("b", tables["b"], 4, most=10)
    assert cache.get("a") is tables["a"]
    cache.put("c", tables["c"], 4, most=10)
    assert [cache.get(name) for name in "abc"] == [tables["a"], None, tables["c"]]
    cache.put("b", tables["b"], 99, most=10)  # the newest stays, whatever its size
    assert [cache.get(name) for name in "abc"] == [None, tables["b"], None]

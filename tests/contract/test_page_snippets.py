"""Snippets of pages that no other test takes from there, on moto and on the embedded engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from fairlane.lease import take
from handlers.jobs.selection.request import accept, parse
from handlers.jobs.words.ports import World
from scripts.opensearch.embedded import EmbeddedSearch
from tests.support import aws
from tests.support.pages import PAGES, blocks
from tests.support.world import moto_world

TENANT: Final = "acme"
KEY: Final[dict[str, Any]] = {"tenant": {"S": TENANT}, "id": {"S": "a"}}


def snippet(page: str, language: str) -> str:
    """The first of the page."""
    return blocks(PAGES[page].read_text(encoding="utf-8"), language)[0]


@pytest.fixture
def world() -> Iterator[World]:
    with moto_world() as made:
        yield made


@pytest.mark.usefixtures("world")
def test_the_worker_of_the_lease_page_writes_and_waits_for_nobody() -> None:
    made: dict[str, Any] = {}
    exec(compile(snippet("docs/lease.md", "python"), "lease.md", "exec"), made)  # noqa: S102
    dynamodb = aws.clients().dynamodb
    part: Any = [{"Put": {"TableName": aws.RECORDS, "Item": {**KEY, "price": {"N": "2"}}}}]
    assert made["sync"](dynamodb, aws.CONTROL, [part, part]) == "done"
    assert dynamodb.get_item(TableName=aws.RECORDS, Key=KEY)["Item"]["price"] == {"N": "2"}
    held = take(
        dynamodb, control_table=aws.CONTROL, tenant=TENANT, subject="products", holder="other"
    )
    assert made["sync"](dynamodb, aws.CONTROL, [part]) == f"later: {held.holder} is at it"


def test_another_program_writes_a_record_as_the_page_of_tables_says(world: World) -> None:
    dynamodb = aws.clients().dynamodb
    written = json.loads(snippet("docs/how-to/own-table.md", "json"))
    dynamodb.put_item(TableName=aws.RECORDS, Item={**KEY, "version": {"N": "4"}})
    dynamodb.update_item(TableName=aws.RECORDS, Key=KEY, **written)
    found = world.records.read(TENANT, ["a"])["a"]
    assert (found.version, str(found.fields["price"])) == (5, "12.50")


def test_the_query_of_the_page_is_accepted(world: World) -> None:
    what = {"operation": "set_fields", "subject": "s", "params": {"fields": {"seen": True}}}
    query = parse(snippet("docs/selection.md", "json"))
    text = json.dumps({**what, **query}, default=str)
    accept(parse(text), world.operations, max_ids=10)


def test_an_index_is_made_as_the_page_of_engines_says(tmp_path: Path) -> None:
    """On the embedded engine, which is used the same way as the node."""
    source = snippet("docs/opensearch.md", "python")
    found = "    found = client.indices.exists(index='products')\n"
    names = {"OpenSearchNode": EmbeddedSearch, "folder": tmp_path}
    exec(compile(source + found, "opensearch.md", "exec"), names)  # noqa: S102
    assert names["found"] is True

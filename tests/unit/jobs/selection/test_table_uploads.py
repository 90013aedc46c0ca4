"""Lookup tables that a request names are checked and fixed when its job is created."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handlers.jobs.lifecycle.submit import submit
from handlers.jobs.selection.preview import preview
from handlers.jobs.selection.request import Accepted, BadRequest, Unprocessable, accept
from handlers.jobs.words.limits import MAX_TABLES, Limits
from handlers.jobs.words.operation import Change, Operation
from handlers.jobs.words.table import Table
from handlers.jobs.words.upload import Format, UploadForm
from handlers.operations.parameters import Parameters
from handlers.testing.world import MemoryWorld, memory_world
from tests.support.jobs import TENANT
from tests.support.tables import FORM, PRICED, price_list, upload, wanted


@pytest.fixture
def world() -> MemoryWorld:
    return memory_world(operations={"priced": PRICED}, limits=Limits(small_max_items=10))


@pytest.mark.parametrize(
    ("content", "form", "why"),
    [
        (b'{"sku": "a"}\n{"sku": "a"}\n', FORM, "line 2: has the key 'a'"),
        (b'"a"\n', UploadForm(format=Format.JSONL), "names no 'column'"),
        (b'{"sku": "a", "x": "' + b"y" * 300 + b'"}\n', FORM, "a table may have 200"),
        (b"sku,a_long_name_of_a_column\n" + b"a,\nb,\nc,\nd,\ne,\nf,\n", None, "200 bytes as JSON"),
    ],
)
def test_what_is_no_table_is_refused_by_its_field(
    world: MemoryWorld, content: bytes, form: UploadForm | None, why: str
) -> None:
    small = replace(world, limits=Limits(max_table_bytes=200))
    upload_id = upload(small, content, form or UploadForm(format=Format.CSV, column="sku"))
    for ask in (submit, preview):
        with pytest.raises(Unprocessable) as refused:
            ask(small, TENANT, wanted(small, upload_id, 1))
        assert refused.value.field == "params.prices"
        assert why in str(refused.value)
    assert not world.payloads.names()


def test_a_table_of_another_tenant_does_not_exist(world: MemoryWorld) -> None:
    theirs = upload(world, price_list(), to="other")
    with pytest.raises(Unprocessable, match="no such upload") as refused:
        submit(world, TENANT, wanted(world, theirs, 1))
    assert refused.value.field == "params.prices"


def test_a_preview_keeps_nothing(world: MemoryWorld) -> None:
    preview(world, TENANT, wanted(world, upload(world, price_list()), 1))
    assert not world.payloads.names()


def test_an_id_that_is_none_is_a_bad_request(world: MemoryWorld) -> None:
    with pytest.raises(BadRequest) as refused:
        wanted(world, "none", 1)
    assert refused.value.field == "params.prices.upload_id"


def test_parameters_without_a_table_are_checked_once(world: MemoryWorld) -> None:
    checks = 0

    class Plain(Parameters):
        def model_post_init(self, _: Any) -> None:
            nonlocal checks
            checks += 1

    plain = Operation("plain", Plain, lambda *_: Change({}), lambda _: frozenset())
    known = replace(world, operations={"plain": plain})
    body = {"operation": "plain", "subject": "s", "params": {}, "ids": ["r0"]}
    request = accept(body, known.operations, max_ids=1)
    assert (request.tables, checks) == (frozenset(), 1)
    for ask in (submit, preview):
        ask(known, TENANT, request)
    assert checks == 1


def test_the_uploads_that_parameters_name_are_noted(world: MemoryWorld) -> None:
    upload_id = upload(world, price_list())
    assert wanted(world, upload_id, 1).tables == {upload_id}


class Lists(Parameters):
    lists: list[Table]


def test_a_request_names_few_tables(world: MemoryWorld) -> None:
    """An operation may take a list of tables; how many there are is up to its callers."""
    several = Operation("several", Lists, lambda *_: Change({}), lambda _: frozenset())
    known = replace(world, operations={"several": several})

    def naming(different: int) -> Accepted:
        lists = [{"upload_id": f"{number % different:032x}"} for number in range(2 * MAX_TABLES)]
        body = {"operation": "several", "subject": "s", "params": {"lists": lists}, "ids": ["r0"]}
        return accept(body, known.operations, max_ids=1)

    assert len(naming(MAX_TABLES).tables) == MAX_TABLES
    with pytest.raises(BadRequest, match="5 lookup tables, at most 4") as refused:
        naming(MAX_TABLES + 1)
    assert refused.value.field == "params"


class TableOrNames(Parameters):
    names: Table | dict[str, str]


def test_a_bad_table_is_not_taken_for_a_value_of_another_type(world: MemoryWorld) -> None:
    either = Operation("either", TableOrNames, lambda *_: Change({}), lambda _: frozenset())
    known = replace(world, operations={"either": either})
    named = {"upload_id": upload(known, b'{"sku": "a"}\n{"sku": "a"}\n')}
    body = {"operation": "either", "subject": "s", "params": {"names": named}, "ids": ["r0"]}
    with pytest.raises(Unprocessable, match="line 2: has the key 'a'"):
        submit(known, TENANT, accept(body, known.operations, max_ids=1))
    body["params"] = {"names": {"a": "b"}}
    submit(known, TENANT, accept(body, known.operations, max_ids=1))

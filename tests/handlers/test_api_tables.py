"""An operation with a lookup table, through the API and the functions' own code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Self

import pytest
from pydantic import model_validator

from handlers.jobs.words.job import Lane
from handlers.operations import registry
from tests.handlers.deployment import TENANT, Deployment, job, upload
from tests.support import aws
from tests.support.tables import PRICED, Priced, price_list

LIST: Final = price_list()


@pytest.fixture(autouse=True)
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an operation of the deployment."""
    registry.all_operations()
    monkeypatch.setitem(registry._found, PRICED.name, PRICED)


def fill(stack: Deployment, count: int) -> list[str]:
    ids = [f"r{n:05}" for n in range(count)]
    for n, id_ in enumerate(ids):
        item: Any = {"tenant": {"S": TENANT}, "id": {"S": id_}, "sku": {"S": f"sku-{n:05}"}}
        stack.made.dynamodb.put_item(TableName=aws.RECORDS, Item=item)
    return ids


def over(ids: Sequence[str], upload_id: object, **more: Any) -> dict[str, Any]:
    params = {"prices": {"upload_id": upload_id}}
    return job(list(ids), operation="priced", params=params, **more)


@pytest.mark.parametrize(("count", "lane"), [(3, Lane.SMALL), (150, Lane.BULK)])
def test_records_get_what_a_table_larger_than_parameters_says(
    stack: Deployment, count: int, lane: Lane
) -> None:
    ids = fill(stack, count)
    created = stack.call("POST", "/v1/jobs", over(ids, upload(stack, LIST, column="sku")))
    assert (created.status, created.body["lane"]) == (202, lane.value)
    stack.made.s3.delete_object(Bucket=aws.BUCKET, Key=uploaded(stack))
    with stack.counted() as first:
        stack.run(lane)
    shown = stack.call("GET", created.body["url"]).body
    assert (shown["state"], shown["succeeded"]) == ("SUCCEEDED", count)
    assert stack.prices(ids) == set(range(count))
    again = stack.call("POST", "/v1/jobs", over(ids, upload(stack, LIST, column="sku")))
    assert again.status == 202
    with stack.counted() as second:
        stack.run(lane)
    assert second.count("S3.GetObject") == 0
    assert first.count("S3.GetObject") <= 1  # none when another test's table is the same


def uploaded(stack: Deployment) -> str:
    """The key of the client's own file, which a job does not need once it is created."""
    objects = stack.made.s3.list_objects_v2(Bucket=aws.BUCKET, Prefix="uploads/")["Contents"]
    [key] = [each["Key"] for each in objects]
    return str(key)


@pytest.mark.parametrize("how", [{}, {"validate_only": "true"}])
def test_what_cannot_be_a_table_names_its_field(stack: Deployment, how: dict[str, str]) -> None:
    files = {
        "line 2: has the key 'a' of line 1": upload(stack, b'{"s":"a"}\n' * 2, column="s"),
        "names no 'column'": upload(stack, b'"a"\n'),
        "no such upload": upload(stack, LIST, tenant="other", column="sku"),
    }
    before = stack.everything()
    for why, upload_id in files.items():
        answer = stack.call("POST", "/v1/jobs", over(["a"], upload_id), query=how)
        assert (answer.status, answer.body["field"]) == (422, "params.prices"), answer
        assert why in answer.body["detail"]
    assert stack.everything() == before


def test_an_id_without_its_form_is_a_bad_request(stack: Deployment) -> None:
    answer = stack.call("POST", "/v1/jobs", over(["a"], "7"))
    assert (answer.status, answer.body["field"]) == (400, "params.prices.upload_id")


def test_the_operations_say_what_a_table_is(stack: Deployment) -> None:
    found = stack.call("GET", "/v1/operations").body["operations"]
    [shown] = [each for each in found if each["name"] == "priced"]
    assert shown["parameters"]["properties"]["prices"]["required"] == ["upload_id"]


class Checked(Priced):
    """Its checks look into the table: what ``operations check`` could not see."""

    at_least: int

    @model_validator(mode="after")
    def _has_rows(self) -> Self:
        if len(self.prices) < self.at_least:
            raise ValueError("has too few rows")
        return self


@pytest.mark.parametrize("how", [{}, {"validate_only": "true"}])
def test_an_operation_whose_check_looks_into_its_table_is_refused(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, how: dict[str, str]
) -> None:
    monkeypatch.setitem(registry._found, "priced", replace(PRICED, parameters=Checked))
    body = over(["a"], upload(stack, LIST, column="sku"))
    body["params"]["at_least"] = 1
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", body, query=how)
    assert (answer.status, answer.body["field"]) == (422, "operation"), answer
    assert "the check of the parameters of 'priced' looks into a lookup table" in answer.text
    assert stack.everything() == before


def test_an_operation_whose_written_fields_depend_on_its_table_is_refused_for_a_query(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = replace(PRICED, writes=lambda parameters: frozenset(parameters.prices))
    monkeypatch.setitem(registry._found, "priced", looks)
    body = over([], upload(stack, LIST, column="sku"))
    del body["ids"]
    everything = {"all": [{"field": "price", "op": "exists", "value": True}]}
    answer = stack.call("POST", "/v1/jobs", {**body, "query": everything})
    assert (answer.status, answer.body["field"]) == (422, "operation"), answer
    assert "the `writes` of 'priced' looks into a lookup table" in answer.text

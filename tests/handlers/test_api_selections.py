"""Selecting records through the API: files, queries, and looking before creating."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import MAX_QUERY_BYTES
from handlers.jobs.words.states import State
from tests.handlers.deployment import TENANT, Deployment, job, upload
from tests.support import aws

if TYPE_CHECKING:
    from collections.abc import Mapping

CHEAP: Final = {"all": [{"field": "price", "op": "lte", "value": 10}]}
MARKED: Final = {"all": [{"field": "mark", "op": "exists", "value": False}]}
LOOK: Final = {"validate_only": "true"}


def over(**selection: object) -> dict[str, Any]:
    return {**{n: v for n, v in job([]).items() if n != "ids"}, **selection}


# --- uploads ----------------------------------------------------------------------------------


def test_an_upload_runs_to_its_end(stack: Deployment) -> None:
    ids = stack.fill(150)
    table = "name,SKU é\r\n" + "".join(f'"a, b",{id_}\r\n' for id_ in [*ids, *ids[:7]])
    upload_id = upload(
        stack, gzip.compress(table.encode()), format="csv", column="SKU é", gzip=True
    )
    answer = stack.call("POST", "/v1/jobs", over(upload_id=upload_id))
    assert answer.status == 202, answer
    assert answer.body["lane"] == "bulk"
    assert answer.body["selection"] == "upload"
    assert "total" not in answer.body
    stack.run(Lane.BULK)
    shown = stack.call("GET", answer.body["url"]).body
    assert (shown["state"], shown["total"], shown["succeeded"], shown["duplicates"]) == (
        "SUCCEEDED",
        150,
        150,
        7,
    )
    assert stack.prices(ids) == {11}


def test_a_bad_line_is_shown_to_whoever_asks_for_the_job(stack: Deployment) -> None:
    ids = stack.fill(2)
    upload_id = upload(stack, f'"{ids[0]}"\n7\n'.encode())
    created = stack.call("POST", "/v1/jobs", over(upload_id=upload_id))
    stack.run(Lane.BULK)
    shown = stack.call("GET", created.body["url"]).body
    assert (shown["state"], shown["end_reason"]) == ("FAILED", "bad_upload")
    assert shown["message"].startswith("line 2: ")
    assert stack.prices(ids) == {10}
    assert stack.create(ids).status == 202


def test_an_address_says_where_how_and_until_when(stack: Deployment) -> None:
    answer = stack.call("POST", "/v1/uploads", {"format": "jsonl"})
    assert answer.status == 201
    assert set(answer.body) == {"upload_id", "url", "fields", "max_bytes", "expires_at"}
    assert answer.body["upload_id"] in answer.body["fields"]["key"]
    assert TENANT not in answer.body["fields"]["key"]
    assert answer.body["max_bytes"] == stack.world.limits.max_upload_bytes


BAD_FORMS: list[tuple[object, str]] = [
    ({}, "format"),
    ({"format": "xml"}, "format"),
    ({"format": None}, "format"),
    ({"format": "csv"}, "body"),
    ({"format": "csv", "column": ""}, "column"),
    ({"format": "csv", "column": "a\nb"}, "column"),
    ({"format": "csv", "column": "\ud800"}, "column"),
    ({"format": "csv", "column": 7}, "column"),
    ({"format": "jsonl", "gzip": "yes"}, "gzip"),
    ({"format": "jsonl", "gzip": 1}, "gzip"),
    ({"format": "jsonl", "more": 1}, "more"),
    ({"format": "jsonl", "tenant": "other"}, "tenant"),
    ([], "body"),
    ("{", "body"),
]


@pytest.mark.parametrize(("form", "field"), BAD_FORMS, ids=[str(n) for n in range(len(BAD_FORMS))])
def test_a_bad_form_is_named(stack: Deployment, form: object, field: str) -> None:
    answer = stack.call("POST", "/v1/uploads", form)
    assert (answer.status, answer.body["field"]) == (400, field)


def test_another_tenants_upload_and_none_at_all_are_the_same(stack: Deployment) -> None:
    theirs = upload(stack, b'"a"\n', tenant="other")
    unsent = stack.call("POST", "/v1/uploads", {"format": "jsonl"}).body["upload_id"]
    before = stack.everything()
    for upload_id in (theirs, unsent, "0" * 32):
        answer = stack.call("POST", "/v1/jobs", over(upload_id=upload_id))
        assert (answer.status, answer.body["field"]) == (422, "upload_id")
        assert "no such upload" in answer.body["detail"]
        assert upload_id not in answer.body["detail"]
    assert stack.everything() == before


def test_a_refused_upload_does_not_use_up_an_idempotency_key(stack: Deployment) -> None:
    headers = {"Idempotency-Key": "k"}
    body = over(upload_id="0" * 32)
    assert stack.call("POST", "/v1/jobs", body, headers=headers).status == 422
    assert stack.created(["a"], headers=headers)


# --- queries ----------------------------------------------------------------------------------


def test_c39_a_query_over_what_the_job_changes(stack: Deployment) -> None:
    ids = stack.fill(120)
    answer = stack.call("POST", "/v1/jobs", over(query=CHEAP))
    assert answer.status == 202, answer
    assert (answer.body["traversal"], answer.body["lane"]) == ("snapshot", "bulk")
    stack.run(Lane.BULK)
    assert stack.job(answer.body["id"]).state is State.SUCCEEDED
    assert stack.job(answer.body["id"]).total == 120
    assert stack.prices(ids) == {11}


def test_a_query_is_walked_live_where_that_is_safe(stack: Deployment) -> None:
    ids = stack.fill(120)
    answer = stack.call("POST", "/v1/jobs", over(query=MARKED))
    assert answer.body["traversal"] == "live"
    stack.run(Lane.BULK)
    assert stack.job(answer.body["id"]).total == 120
    assert stack.prices(ids) == {11}


def test_unsafe_live_is_refused_by_the_names_of_the_fields(stack: Deployment) -> None:
    stack.fill(2)
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", over(query=CHEAP, traversal="live"))
    assert (answer.status, answer.body["field"], answer.body["fields"]) == (
        422,
        "traversal",
        ["price"],
    )
    assert stack.everything() == before


BAD_QUERIES: list[tuple[object, int, str]] = [
    (None, 400, "query"),
    ({}, 400, "query.all"),
    ({"all": []}, 400, "query"),
    ({"all": [{}]}, 400, "query.all[0]"),
    ("x", 400, "query"),
    ({"all": [{"field": "a", "op": "like", "value": "x"}]}, 400, "query.all[0]"),
    ({"all": [{"field": "a", "op": "lt", "value": True}]}, 400, "query.all[0].value"),
    ({"all": [{"field": "tenant", "op": "eq", "value": "other"}]}, 400, "query.all[0].field"),
    (
        {
            "all": [
                {"field": "a", "op": "in", "value": ["x" * 1000] * (1 + MAX_QUERY_BYTES // 1000)}
            ]
        },
        413,
        "query",
    ),
]


@pytest.mark.parametrize(
    ("query", "status", "field"), BAD_QUERIES, ids=[str(n) for n in range(len(BAD_QUERIES))]
)
@pytest.mark.parametrize("look", [None, LOOK], ids=["create", "look"])
def test_c59_a_query_that_says_nothing_touches_nothing(
    stack: Deployment, query: object, status: int, field: str, look: Mapping[str, str] | None
) -> None:
    stack.fill(2)
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", over(query=query), query=look)
    assert (answer.status, answer.body["field"]) == (status, field)
    assert stack.everything() == before


# --- looking ----------------------------------------------------------------------------------


def look(stack: Deployment, body: object, status: int = 200) -> dict[str, Any]:
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", body, query=LOOK)
    assert answer.status == status, answer
    assert stack.everything() == before
    assert "Location" not in answer.headers
    seen: dict[str, Any] = answer.body
    return seen


def test_looking_at_ids(stack: Deployment) -> None:
    ids = stack.fill(150)
    seen = look(stack, job([*ids, ids[0]]))
    assert (seen["lane"], seen["count"], seen["count_is_exact"]) == ("bulk", 150, True)
    assert (seen["duplicates"], seen["sample"]) == (1, ids[:10])
    assert "traversal" not in seen
    assert seen["estimate"]["write_units"] > 2 * 150
    assert seen["estimate"]["seconds"] >= 0
    assert look(stack, job(ids[:100]))["lane"] == "small"


def test_looking_at_a_query(stack: Deployment) -> None:
    ids = stack.fill(101)
    seen = look(stack, over(query=CHEAP))
    assert (seen["lane"], seen["count"], seen["count_is_exact"]) == ("bulk", 101, True)
    assert seen["sample"] == ids[:10]
    assert seen["traversal"] == "snapshot"
    assert "price" in seen["why"]
    assert look(stack, over(query=MARKED))["traversal"] == "live"
    nothing = look(stack, over(query={"all": [{"field": "price", "op": "gt", "value": 10}]}))
    assert (nothing["lane"], nothing["count"], nothing["sample"]) == ("small", 0, [])


def test_looking_at_a_query_over_few_records(stack: Deployment) -> None:
    ids = stack.fill(100)
    seen = look(stack, over(query=MARKED))
    few = ("small", 100, True, "snapshot")
    assert (seen["lane"], seen["count"], seen["count_is_exact"], seen["traversal"]) == few
    assert seen["sample"] == ids[:10]
    assert "fixed when the job was created" in seen["why"]


def test_looking_at_a_file_reads_its_beginning(stack: Deployment) -> None:
    ids = [f"{n:03}" for n in range(101)]
    upload_id = upload(stack, "".join(f'"{id_}"\n' for id_ in ids * 2).encode())
    seen = look(stack, over(upload_id=upload_id))
    assert (seen["lane"], seen["count"], seen["count_is_exact"]) == ("bulk", None, False)
    assert seen["sample"] == ids[:10]
    assert "estimate" not in seen
    bad = look(stack, over(upload_id=upload(stack, b'"a"\n7\n')), 422)
    assert (bad["field"], bad["detail"].startswith("line 2")) == ("upload_id", True)


def test_looking_at_a_file_over_few_records_counts_them(stack: Deployment) -> None:
    seen = look(stack, over(upload_id=upload(stack, b'"a"\n"b"\n' * 100)))
    assert (seen["lane"], seen["count"], seen["count_is_exact"]) == ("small", 2, True)
    assert (seen["sample"], seen["duplicates"]) == (["a", "b"], 198)


def test_looking_refuses_what_creating_refuses(stack: Deployment) -> None:
    assert look(stack, over(query=CHEAP, traversal="live"), 422)["field"] == "traversal"
    assert look(stack, over(upload_id="0" * 32), 422)["field"] == "upload_id"
    assert look(stack, job([]), 400)["field"] == "ids"


def test_larger_records_cost_more(stack: Deployment) -> None:
    small = look(stack, job(stack.fill(5)))["estimate"]["write_units"]
    for id_ in (f"r{n:05}" for n in range(5)):
        stack.made.dynamodb.put_item(
            TableName=aws.RECORDS,
            Item={"tenant": {"S": TENANT}, "id": {"S": id_}, "text": {"S": "x" * 3000}},
        )
    large = look(stack, job([f"r{n:05}" for n in range(5)]))["estimate"]["write_units"]
    assert large - small == 5 * 2 * 2


@pytest.mark.parametrize("value", ["", "yes", "1", "TRUE"])
def test_what_is_no_answer_to_validate_only(stack: Deployment, value: str) -> None:
    answer = stack.call("POST", "/v1/jobs", job(["a"]), query={"validate_only": value})
    assert (answer.status, answer.body["field"]) == (400, "validate_only")


def test_validate_only_false_creates(stack: Deployment) -> None:
    answer = stack.call("POST", "/v1/jobs", job(["a"]), query={"validate_only": "false"})
    assert answer.status == 202
    assert json.dumps(answer.body)

"""What the API refuses: with a problem that names the field, and nothing left behind."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.words.limits import MAX_ID_BYTES, MAX_PARAMS_BYTES
from tests.handlers.deployment import IDEMPOTENCY, Deployment, deployed, job, upload
from tests.support import aws

if TYPE_CHECKING:
    from collections.abc import Mapping

SET: dict[str, Any] = {"operation": "set_fields"}


def without(name: str) -> dict[str, Any]:
    return {key: value for key, value in job(["a"]).items() if key != name}


def params(**values: object) -> dict[str, Any]:
    return job(["a"], params=values)


def nested(depth: int, inner: object = 1) -> object:
    value = inner
    for _ in range(depth):
        value = [value]
    return value


BAD_IDS: list[tuple[object, str]] = [
    ([], "ids"),
    (None, "ids"),
    ("a", "ids"),
    ({"0": "a"}, "ids"),
    (7, "ids"),
    (True, "ids"),
    ([""], "ids[0]"),
    (["a", ""], "ids[1]"),
    (["a", None], "ids[1]"),
    (["a", 7], "ids[1]"),
    (["a", 1.5], "ids[1]"),
    (["a", True], "ids[1]"),
    (["a", ["b"]], "ids[1]"),
    (["a", {"id": "b"}], "ids[1]"),
    (["a", "b\x00"], "ids[1]"),
    (["a", "\x0b"], "ids[1]"),
    (["a", "b\nc"], "ids[1]"),
    (["a", "\x7f"], "ids[1]"),
    (["a", "\x85"], "ids[1]"),
    (["a", "\ud800"], "ids[1]"),
    (["a", "\udc00x"], "ids[1]"),
    (["a", "x" * (MAX_ID_BYTES + 1)], "ids[1]"),
    (["a", "é" * (MAX_ID_BYTES // 2) + "x"], "ids[1]"),
    (["x", nested(40)], "body"),
    ([7] * 50_000, "ids[0]"),
]

BAD_BODIES: list[tuple[object, str]] = [
    (None, "body"),
    ("", "body"),
    ("{", "body"),
    ("not json", "body"),
    ("\ufeff{}", "body"),
    ("null", "body"),
    ("[]", "body"),
    ('"text"', "body"),
    ("7", "body"),
    ("{} {}", "body"),
    ("[" * 100_000, "body"),
    ('{"a":' * 5000, "body"),
    (json.dumps(job(["a"])).replace('"add": 1', '"add": NaN'), "body"),
    (json.dumps(job(["a"])).replace('"add": 1', '"add": Infinity'), "body"),
    (json.dumps(job(["a"])).replace('"add": 1', '"add": -Infinity'), "body"),
    (json.dumps(job(["a"])).replace('"add": 1', '"add": 1e99999999999999999999'), "body"),
    (json.dumps(job(["a"])).replace('"add": 1', f'"add": {"9" * 5000}'), "body"),
    ({}, "operation"),
    (without("operation"), "operation"),
    (without("subject"), "subject"),
    (without("ids"), "ids"),
    ({**job(["a"]), "tenant": "other"}, "tenant"),
    ({**job(["a"]), "surprise": 1}, "surprise"),
    ({**job(["a"]), "x" * 100_000: 1}, "x" * 200),
    ({**job(["a"]), "\ud800": 1}, "body"),
    ({**job(["a"]), "operation": "no_such"}, "operation"),
    ({**job(["a"]), "operation": ""}, "operation"),
    ({**job(["a"]), "operation": None}, "operation"),
    ({**job(["a"]), "operation": ["adjust_number"]}, "operation"),
    (job(["a"], ""), "subject"),
    ({**job(["a"]), "subject": None}, "subject"),
    ({**job(["a"]), "subject": 7}, "subject"),
    (job(["a"], "a\x00b"), "subject"),
    (job(["a"], "a\x0bb"), "subject"),
    (job(["a"], "a\nb"), "subject"),
    (job(["a"], "\ud83d"), "subject"),
    (job(["a"], "x" * 257), "subject"),
    (job(["a"], tolerated_failure_percent=101), "tolerated_failure_percent"),
    (job(["a"], tolerated_failure_percent=-1), "tolerated_failure_percent"),
    (job(["a"], tolerated_failure_percent=1.5), "tolerated_failure_percent"),
    (job(["a"], tolerated_failure_percent="1"), "tolerated_failure_percent"),
    (job(["a"], tolerated_failure_percent=True), "tolerated_failure_percent"),
    (job(["a"], tolerated_failure_percent=None), "tolerated_failure_percent"),
    (job(["a"], labels={"a": 1}), "labels.a"),
    (job(["a"], labels={"a": ""}), "labels.a"),
    (job(["a"], labels=[]), "labels"),
    (job(["a"], labels={f"l{n}": "x" for n in range(11)}), "labels"),
    (job(["a"], params=None), "params"),
    (job(["a"], params=[]), "params"),
    (job(["a"], params="{}"), "params"),
    (params(), "params.field"),
    (params(field="price"), "params"),
    (params(field="price", add="much"), "params.add"),
    (params(field="price", add=True), "params.add"),
    (params(field="price", add=None, multiply=[1]), "params.multiply"),
    (params(field="price", add={"a": 1}), "params.add"),
    (params(field="price", add=1, more=1), "params.more"),
    (params(field="id", add=1), "params.field"),
    (params(field="version", add=1), "params.field"),
    (params(field="", add=1), "params.field"),
    (params(field="\ud800", add=1), "params.field"),
    (params(field="price", minimum=2, maximum=1), "params"),
    (params(field="price", add=1, places=1.5), "params.places"),
    (params(field="price", add=int("1" * 39)), "params.add"),
    (params(field="price", add=1e200), "params.add"),
    ({**params(fields={}), **SET}, "params.fields"),
    ({**params(fields={"tenant": "x"}), **SET}, "params.fields.tenant"),
    ({**params(fields={"a": nested(20)}), **SET}, "params.fields.a"),
    ({**params(fields={"a": [1, nested(40)]}), **SET}, "body"),
    ({**params(fields={"a": ["\ud800"]}), **SET}, "params.fields.a"),
    ({**params(fields={"a": [None]}), **SET}, "params.fields.a"),
]

CASES = [*BAD_BODIES, *((job(ids), field) for ids, field in BAD_IDS)]


@pytest.fixture(scope="module")
def shared() -> Iterator[Deployment]:
    """One deployment with something in it: what is refused must not change it."""
    with pytest.MonkeyPatch.context() as monkeypatch, deployed(monkeypatch) as stack:
        stack.created(stack.fill(2), headers={"Idempotency-Key": "known"})
        yield stack


def test_what_would_be_left_behind_is_seen(shared: Deployment) -> None:
    """All that clients could see, too."""
    stack, before = shared, shared.everything()
    upload(stack, b'"a"\n')
    ids = [*stack.fill(2), "seen"]
    stack.fill(1, tenant="another")
    stack.created(ids, "seen", headers={"Idempotency-Key": "seen"})
    seen = stack.everything()
    changed = {name for name, there in seen.items() if there != before[name]}
    assert changed == {aws.CONTROL, aws.RECORDS, IDEMPOTENCY, "small", "objects"}
    for table in (aws.CONTROL, aws.RECORDS, IDEMPOTENCY):
        items = stack.made.dynamodb.scan(TableName=table)["Items"]
        assert seen[table] == sorted(
            json.dumps({"Attributes": each}, sort_keys=True) for each in items
        )


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "new"}], ids=["plain", "key"])
@pytest.mark.parametrize(("body", "field"), CASES, ids=[str(n) for n in range(len(CASES))])
def test_it_is_refused_by_name_and_leaves_nothing(
    shared: Deployment, body: object, field: str, key: Mapping[str, str]
) -> None:
    before = shared.everything()
    with shared.counted() as calls:
        answer = shared.call("POST", "/v1/jobs", body, headers=key)
    assert (answer.status, answer.body.get("field")) == (400, field), answer
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.body
    assert (problem["status"], problem["code"], problem["title"]) == (
        400,
        "bad_request",
        "Bad Request",
    )
    assert problem["type"] == "urn:fairlane:problem:bad_request"
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert len(json.dumps(problem)) < 4000
    assert calls == []
    assert shared.everything() == before


def test_the_good_request_of_these_cases_is_good(shared: Deployment) -> None:
    body = {**params(fields={"a": nested(10)}), **SET, "subject": "good"}
    answer = shared.call("POST", "/v1/jobs", body)
    assert answer.status == 202
    assert shared.call("POST", f"{answer.body['url']}/cancel").status == 202


@pytest.mark.parametrize(
    "body",
    [
        base64.b64encode(b'{"a": "\xff"}').decode(),
        base64.b64encode(json.dumps(job(["a"])).encode("utf-16")).decode(),
        "*",
        "a",
    ],
)
def test_a_body_that_is_not_utf8_is_refused(shared: Deployment, body: str) -> None:
    before = shared.everything()
    answer = shared.call("POST", "/v1/jobs", body, isBase64Encoded=True)
    assert (answer.status, answer.body["field"]) == (400, "body")
    assert shared.everything() == before


@pytest.mark.parametrize("key", ["", "a\x00", "a\nb", "k" * 257, "\ud800"])
def test_a_bad_idempotency_key_is_refused(shared: Deployment, key: str) -> None:
    before = shared.everything()
    answer = shared.create(["a"], headers={"Idempotency-Key": key})
    assert (answer.status, answer.body["field"]) == (400, "Idempotency-Key")
    assert shared.everything() == before


@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "large"}], ids=["plain", "key"])
def test_parameters_that_no_job_could_hold_are_too_large(
    shared: Deployment, key: Mapping[str, str]
) -> None:
    before = shared.everything()

    def ask(size: int) -> Any:
        values = {"fields": {"text": "x" * size}}
        body = {**job(["a"], "large params"), **SET, "params": values}
        return shared.call("POST", "/v1/jobs", body, headers=key)

    around = len('{"fields":{"text":""}}')
    answer = ask(MAX_PARAMS_BYTES - around + 1)
    assert (answer.status, answer.body["field"]) == (413, "params")
    assert shared.everything() == before
    assert ask(MAX_PARAMS_BYTES - around).status == 202
    shared.call("POST", f"/v1/jobs/{shared.call('GET', '/v1/jobs').body['jobs'][0]['id']}/cancel")

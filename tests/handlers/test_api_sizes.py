"""Sizes and odd characters: what passes, passes intact; what does not is 413."""

from __future__ import annotations

import json

import pytest

from handlers.jobs.limits import EVENT_LIMIT, EVENT_RESERVE, Limits
from tests.handlers.deployment import Deployment, deployed, job


def test_one_id_more_than_allowed_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    with deployed(monkeypatch, limits=Limits(max_inline_ids=150)) as stack:
        ids = [f"{n:060}" for n in range(151)]
        before = stack.everything()
        answer = stack.create(ids)
        assert (answer.status, answer.body["field"]) == (413, "ids")
        assert "at most 150" in answer.body["detail"]
        assert stack.everything() == before
        assert stack.create(ids[:150]).status == 202


@pytest.mark.parametrize("letter", ["x", "é", "😀"], ids=["ascii", "two bytes", "four bytes"])
def test_c50_size_in_transit_decides_never_an_unexplained_error(
    stack: Deployment, letter: str
) -> None:
    """A character outside ASCII takes 6 or 12 bytes in the function's event."""
    limit = EVENT_LIMIT - EVENT_RESERVE
    body = json.dumps(job([f"{n:03}{letter * 30}" for n in range(1000)]), ensure_ascii=False)
    padding = " " * (limit - len(json.dumps(body)))
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", f"{body}{padding} ")
    assert (answer.status, answer.body["field"]) == (413, "body")
    assert f"at most {limit}" in answer.body["detail"]
    assert stack.everything() == before
    assert stack.call("POST", "/v1/jobs", f"{body}{padding}").status == 202


@pytest.mark.parametrize("size", [7_900, 8_300, 70_000, 1_000_000])
def test_c49_bodies_of_every_documented_size_are_accepted(stack: Deployment, size: int) -> None:
    ids = [f"{n:036}" for n in range(size // 39)]
    answer = stack.create(ids)
    assert (answer.status, answer.body["total"]) == (202, len(ids))


@pytest.mark.parametrize(
    "id_", ["😀", "אבג", "\u202eabc", " 7 ", "a b", "1e5", "#", "a#b/c?d", "\u2028", "e\u0301", "é"]
)
def test_c54_odd_ids_and_subjects_come_through_as_they_are(stack: Deployment, id_: str) -> None:
    answer = stack.create([id_], id_)
    assert (answer.status, answer.body["subject"]) == (202, id_)
    stored = stack.job(answer.body["id"])
    assert (stored.ids, stored.subject) == ((id_,), id_)
    stack.made.dynamodb.put_item(
        TableName="records",
        Item={"tenant": {"S": "acme"}, "id": {"S": id_}, "price": {"N": "10"}},
    )
    stack.run()
    assert stack.prices([id_]) == {11}


@pytest.mark.parametrize("ids", [[], None, [""], "absent"])
def test_c59_nothing_selected_touches_nothing(stack: Deployment, ids: object) -> None:
    stack.fill(3)
    before = stack.everything()
    body = job(ids)
    if ids == "absent":
        del body["ids"]
    answer = stack.call("POST", "/v1/jobs", body)
    assert (answer.status, answer.body["field"].partition("[")[0]) == (400, "ids")
    assert stack.everything() == before
    assert stack.create(["r00000"]).status == 202

"""Sizes and odd characters: what passes, passes intact; what does not is 413."""

from __future__ import annotations

import json

import pytest

from handlers.jobs.words.limits import MAX_BODY_BYTES, MAX_INLINE_IDS, Limits
from tests.handlers.deployment import Deployment, deployed, job


def test_one_id_more_than_allowed_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    with deployed(monkeypatch, limits=Limits(max_inline_ids=150)) as stack:
        ids = [f"{n:060}" for n in range(151)]
        before = stack.everything()
        answer = stack.create(ids)
        assert (answer.status, answer.body["field"]) == (413, "ids")
        assert "at most 150" in answer.body["detail"]
        assert "POST /v1/uploads" in answer.body["detail"]
        assert stack.everything() == before
        assert stack.create(ids[:150]).status == 202


@pytest.mark.parametrize("escaped", [False, True], ids=["raw", "escaped"])
@pytest.mark.parametrize("letter", ["x", "é", "あ", "😀"])
def test_c50_bytes_as_sent_decide_never_an_unexplained_error(
    stack: Deployment, letter: str, *, escaped: bool
) -> None:
    """Ids of 60 bytes or more, as few or as many as fill the limit, whatever each is written as."""
    body = filled(stack, letter, ascii_only=escaped)
    assert len(body.encode()) == MAX_BODY_BYTES
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", body + " ")
    assert (answer.status, answer.body["field"]) == (413, "body")
    assert f"at most {MAX_BODY_BYTES} are" in answer.body["detail"]
    assert "POST /v1/uploads" in answer.body["detail"]
    assert stack.everything() == before
    answer = stack.call("POST", "/v1/jobs", body)
    assert (answer.status, answer.body["total"]) == (202, len(json.loads(body)["ids"]))


def filled(stack: Deployment, letter: str, *, ascii_only: bool) -> str:
    """A body of exactly as many bytes as are allowed; what no id fills is blank."""
    size = len(json.dumps(letter, ensure_ascii=ascii_only).encode()) - 2
    one = "%05d" + letter * max(60 // size, 1)
    beside = len(json.dumps(job([])).encode())
    count = (MAX_BODY_BYTES - beside) // (
        len(json.dumps(one % 0, ensure_ascii=ascii_only).encode()) + 1
    )
    assert count <= stack.world.limits.max_inline_ids
    text = json.dumps(
        job([one % n for n in range(count)]), ensure_ascii=ascii_only, separators=(",", ":")
    )
    return text + " " * (MAX_BODY_BYTES - len(text.encode()))


@pytest.mark.parametrize("past", [0, 1])
def test_c50_as_many_uuids_as_the_table_says_and_no_more(stack: Deployment, past: int) -> None:
    ids = [f"{n:036}" for n in range(MAX_INLINE_IDS + past)]
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", json.dumps(job(ids), separators=(",", ":")))
    if not past:
        assert (answer.status, answer.body["total"]) == (202, MAX_INLINE_IDS)
        return
    assert (answer.status, answer.body["field"]) == (413, "ids")
    assert "POST /v1/uploads" in answer.body["detail"]
    assert stack.everything() == before


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


@pytest.mark.parametrize(
    "text",
    ["\\u0000", "\\u000b", "a\\nb", "\\u007f", "\\u0085", "\\ud800", "x\\udc00y", "\\udc00\\ud800"],
)
@pytest.mark.parametrize("where", ["ids[2]", "subject"])
def test_c54_what_no_message_or_key_can_carry_is_refused_at_once(
    stack: Deployment, where: str, text: str
) -> None:
    body = json.dumps(job(["a", "b", "HERE"], "products"))
    if where == "subject":
        body = json.dumps(job(["a"], "HERE"))
    before = stack.everything()
    answer = stack.call("POST", "/v1/jobs", body.replace("HERE", text))
    assert (answer.status, answer.body["field"]) == (400, where)
    assert stack.everything() == before


def test_c55_ids_and_subjects_that_look_alike_stay_apart(stack: Deployment) -> None:
    ids = ["007", "07", "7", " 7 ", "1e5", "100000", "7.0"]
    for id_ in ids:
        stack.made.dynamodb.put_item(
            TableName="records",
            Item={"tenant": {"S": "acme"}, "id": {"S": id_}, "price": {"N": "10"}},
        )
    first = stack.create(ids[:3], "00123")
    second = stack.create(ids[3:], "123")
    assert (first.status, second.status) == (202, 202)
    assert (first.body["subject"], second.body["subject"]) == ("00123", "123")
    stored = [stack.job(answer.body["id"]).ids for answer in (first, second)]
    assert stored == [tuple(ids[:3]), tuple(ids[3:])]
    stack.run()
    stack.run()
    found = stack.world.records.read("acme", ids)
    assert {id_: record.fields["price"] for id_, record in found.items()} == dict.fromkeys(ids, 11)


@pytest.mark.parametrize("number", ["7", "7.0", "1e5", "true", "null", '["7"]'])
def test_c55_a_number_is_no_id(stack: Deployment, number: str) -> None:
    body = json.dumps(job(["a", "HERE"])).replace('"HERE"', number)
    answer = stack.call("POST", "/v1/jobs", body)
    assert (answer.status, answer.body["field"]) == (400, "ids[1]")


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

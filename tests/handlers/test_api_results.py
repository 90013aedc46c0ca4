"""What became of single records: items in pages, and reports."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest

from handlers.aws.payload_store import S3PayloadStore
from handlers.jobs.results import items, report
from handlers.jobs.storage import control_table
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.writes import Delete, Put
from handlers.web import item_results
from tests.handlers.deployment import deployed
from tests.handlers.mixed_jobs import mixed
from tests.support import aws

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.handlers.deployment import Answer, Deployment

UNKNOWN = f"{0:032x}"


def _as_version_0_1_0(stack: Deployment, id_: str) -> None:
    """Makes the rows of each chunk the one that version 0.1.0 would have written."""
    store = stack.world.store
    mixed_rows: dict[str, dict[str, Any]] = {}
    for prefix in control_table.OUTCOME_ROWS.values():
        for found in store.query_partition(f"JOB#{id_}", sk_prefix=prefix).found:
            mixed_rows.setdefault(found.key.sk.removeprefix(prefix), {}).update(found.item)
            store.transact("move", [Delete(found.key)])
    for position, row in mixed_rows.items():
        store.transact("move", [Put(control_table.mixed_key(id_, int(position)), row)])


def listed(stack: Deployment, id_: str, outcome: str, **query: str) -> list[dict[str, str]]:
    """All pages."""
    found: list[dict[str, str]] = []
    asked = {"outcome": outcome, **query}
    while True:
        answer = stack.call("GET", f"/v1/jobs/{id_}/items", query=asked)
        assert answer.status == 200, answer
        found += answer.body["items"]
        if "next" not in answer.body:
            return found
        asked["page"] = answer.body["next"]


def download(stack: Deployment, answer: Answer) -> bytes:
    """What the address leads to, asked for as a client does: with nothing but the address."""
    assert answer.status == 201, answer
    parts = urlsplit(answer.body["url"])
    assert "X-Amz-Signature" in parts.query
    name = unquote(parts.path).split("/", 2)[-1] if parts.path.startswith("/payloads/") else None
    key = name or unquote(parts.path).lstrip("/")
    content = stack.made.s3.get_object(Bucket=aws.BUCKET, Key=key)["Body"].read()
    assert hashlib.sha256(content).hexdigest() == answer.body["sha256"]
    assert len(content) == answer.body["bytes"]
    return content


@pytest.mark.parametrize("limit", ["1", "3", "1000"])
def test_items_in_pages_hold_each_record_once_with_its_reason(
    stack: Deployment, limit: str
) -> None:
    id_, failed = mixed(stack, 150, 6, 7)
    shown = listed(stack, id_, "failed", limit=limit)
    assert sorted(each["id"] for each in shown) == failed
    assert all(each["reason"] for each in shown)
    skipped = listed(stack, id_, "skipped", limit=limit)
    assert sorted(each["id"] for each in skipped) == [f"absent {n:03}" for n in range(6)]
    assert {each["reason"] for each in skipped} == {"no such record"}
    assert listed(stack, id_, "refused") == []


def refuse(stack: Deployment, id_: str, position: int, tries: int, ids: Sequence[str]) -> None:
    rows = [{"sink": "webhook", "id": i, "reason": "bad"} for i in ids]
    key = control_table.refused_key(id_, position, tries)
    stack.world.store.transact("refuse", [Put(key, {"refused": rows})])


def test_refused_records_name_their_sink(stack: Deployment) -> None:
    id_, _ = mixed(stack, 3, 0, 0)
    refuse(stack, id_, 0, 0, ["a", "b"])
    refuse(stack, id_, 0, 1, ["c"])
    shown = listed(stack, id_, "refused", limit="2")
    assert shown == [{"id": i, "reason": "bad", "sink": "webhook"} for i in ("a", "b", "c")]


def test_a_page_is_bounded_in_bytes(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_results, "MAX_BYTES", 60)
    id_, _ = mixed(stack, 1, 9, 0)
    answer = stack.call("GET", f"/v1/jobs/{id_}/items", query={"outcome": "skipped"})
    assert len(answer.body["items"]) == 2  # of 24 bytes each
    assert len(listed(stack, id_, "skipped")) == 9
    monkeypatch.setattr(item_results, "MAX_BYTES", 1)
    assert len(listed(stack, id_, "skipped")) == 9


@pytest.mark.parametrize("absent", [3, 60])
def test_c115_a_page_of_one_outcome_costs_no_call_for_the_others(
    monkeypatch: pytest.MonkeyPatch, absent: int
) -> None:
    """The job; rows of version 0.1.0, of which there are none; the row of the failed record, and
    the end after it."""
    monkeypatch.setattr(items, "ROWS", 1)
    with deployed(monkeypatch, limits=Limits(chunk_size=5)) as stack:
        id_, failed = mixed(stack, 4, absent, 1)
        with stack.counted() as calls:
            answer = stack.call("GET", f"/v1/jobs/{id_}/items", query={"outcome": "failed"})
    assert [each["id"] for each in answer.body["items"]] == failed
    assert "next" not in answer.body
    assert calls == ["DynamoDB.GetItem"] + ["DynamoDB.Query"] * 3


def test_a_page_looks_through_so_many_rows_and_no_more(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items, "MAX_ROWS", 2)
    monkeypatch.setattr(items, "ROWS", 1)
    id_, failed = mixed(stack, 280, 12, 2)
    _as_version_0_1_0(stack, id_)
    first = stack.call("GET", f"/v1/jobs/{id_}/items", query={"outcome": "failed"})
    assert "next" in first.body
    assert sorted(each["id"] for each in listed(stack, id_, "failed")) == failed


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"outcome": "succeeded"},
        {"outcome": "failed", "limit": "0"},
        {"outcome": "failed", "limit": "1001"},
        {"outcome": "failed", "page": "x"},
        {"outcome": "failed", "page": ""},
        {"outcome": ["failed", "skipped"]},
        {"outcome": "failed", "state": "FAILED"},
    ],
)
def test_bad_questions_about_items(stack: Deployment, query: dict[str, str | list[str]]) -> None:
    id_ = stack.created(["a"])
    answer = stack.call("GET", f"/v1/jobs/{id_}/items", query=query)
    assert (answer.status, answer.body["code"]) == (400, "bad_request")


def test_a_token_is_for_its_own_job_outcome_and_tenant(stack: Deployment) -> None:
    id_, _ = mixed(stack, 1, 5, 5)
    page = stack.call(
        "GET", f"/v1/jobs/{id_}/items", query={"outcome": "failed", "limit": "1"}
    ).body["next"]
    other = stack.created(["a"], "other")
    for path, outcome in ((id_, "skipped"), (other, "failed")):
        query = {"outcome": outcome, "page": page}
        answer = stack.call("GET", f"/v1/jobs/{path}/items", query=query)
        assert (answer.status, answer.body["field"]) == (400, "page")


def test_records_of_another_tenants_job_are_not_found(stack: Deployment) -> None:
    id_, _ = mixed(stack, 1, 1, 1)
    before = stack.everything()
    for tenant, job_id in (("other", id_), ("acme", UNKNOWN), ("acme", "x")):
        for method, path in (
            ("GET", "items?"),
            ("POST", "report"),
            ("POST", "retry"),
        ):
            query = {"failed_only": "true"} if path == "retry" else None
            query = {"outcome": "failed"} if path == "items?" else query
            url = f"/v1/jobs/{job_id}/{path.rstrip('?')}"
            assert stack.call(method, url, query=query, tenant=tenant).status == 404
    assert stack.everything() == before


# --- reports ----------------------------------------------------------------------------------


def test_a_report_as_csv_can_be_downloaded_and_checked(stack: Deployment) -> None:
    id_, failed = mixed(stack, 2, 3, 2)
    answer = stack.call("POST", f"/v1/jobs/{id_}/report")
    assert (answer.body["count"], answer.body["format"], answer.body["outcome"]) == (
        5,
        "csv",
        "all",
    )
    assert (answer.body["complete"], answer.body["state"]) == (True, "SUCCEEDED")
    assert answer.headers["location"] == answer.body["url"]
    rows = list(csv.reader(io.StringIO(download(stack, answer).decode(), newline="")))
    assert rows[0] == ["outcome", "id", "reason", "sink"]
    assert sorted(row[1] for row in rows if row[0] == "failed") == failed
    assert len([row for row in rows if row[0] == "skipped"]) == 3


def test_a_report_as_json_lines(stack: Deployment) -> None:
    id_, failed = mixed(stack, 1, 2, 2)
    refuse(stack, id_, 0, 0, ["ü"])
    for outcome, count in (("failed", 2), ("skipped", 2), ("refused", 1), ("all", 5)):
        query = {"format": "jsonl", "outcome": outcome}
        answer = stack.call("POST", f"/v1/jobs/{id_}/report", query=query)
        lines = [json.loads(line) for line in download(stack, answer).splitlines()]
        assert len(lines) == count == answer.body["count"]
        if outcome == "failed":
            assert sorted(line["id"] for line in lines) == failed
        elif outcome == "refused":
            expected = {"outcome": "refused", "id": "ü", "reason": "bad", "sink": "webhook"}
            assert lines == [expected]


def test_a_report_of_nothing_is_an_empty_list(stack: Deployment) -> None:
    id_ = stack.created(["a"])
    answer = stack.call("POST", f"/v1/jobs/{id_}/report")
    assert (answer.body["count"], answer.body["complete"]) == (0, False)
    assert download(stack, answer) == b"outcome,id,reason,sink\r\n"
    answer = stack.call("POST", f"/v1/jobs/{id_}/report", query={"format": "jsonl"})
    assert download(stack, answer) == b""


@pytest.mark.parametrize("end", ["cancel", "fail"])
def test_jobs_that_did_not_succeed_have_reports_too(stack: Deployment, end: str) -> None:
    if end == "fail":
        id_ = stack.created(
            stack.fill(2), params={"field": "no", "add": 1}, tolerated_failure_percent=0
        )
        stack.run()
        count, state = 2, "FAILED"
    else:
        id_ = stack.created(["a"])
        stack.call("POST", f"/v1/jobs/{id_}/cancel")
        count, state = 0, "CANCELLED"
    answer = stack.call("POST", f"/v1/jobs/{id_}/report")
    assert (answer.body["state"], answer.body["complete"]) == (state, True)
    assert answer.body["count"] == count
    download(stack, answer)


def test_an_address_never_shows_another_file_than_it_was_described_with(
    stack: Deployment,
) -> None:
    id_, _ = mixed(stack, 1, 1, 1)
    url = f"/v1/jobs/{id_}/report"
    done = [stack.call("POST", url) for _ in range(2)]
    assert {download(stack, each) for each in done} == {download(stack, done[0])}
    waiting = stack.created(["a"], "waiting")
    early = stack.call("POST", f"/v1/jobs/{waiting}/report")
    stack.run()
    late = stack.call("POST", f"/v1/jobs/{waiting}/report")
    assert download(stack, early) != download(stack, late)
    assert (early.body["count"], late.body["count"]) == (0, 1)


def test_a_report_that_takes_too_long_says_so(stack: Deployment) -> None:
    id_, _ = mixed(stack, 1, 1, 1)
    answer = stack.call("POST", f"/v1/jobs/{id_}/report", remaining=item_results.RESERVE_MS - 1)
    assert (answer.status, answer.body["code"]) == (422, "report_too_large")
    assert stack.everything()["objects"] == []


def test_a_report_stops_in_time_also_where_there_is_nothing_to_list(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of version 0.1.0 that hold none of what is asked for take time, too."""
    monkeypatch.setattr(items, "ROWS", 1)
    id_, _ = mixed(stack, 0, 120, 1)
    _as_version_0_1_0(stack, id_)
    before = len(stack.requests)
    answer = stack.call(
        "POST",
        f"/v1/jobs/{id_}/report",
        query={"outcome": "failed"},
        remaining=item_results.RESERVE_MS - 1,
    )
    assert (answer.status, answer.body["code"]) == (422, "report_too_large")
    assert stack.requests[before:].count("DynamoDB.Query") == 1


def test_a_report_is_written_in_parts(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "PAYLOAD_BLOCK", 100)
    id_, _ = mixed(stack, 1, 20, 0)
    blocks: list[int] = []
    put = S3PayloadStore.put

    def watched(self: Any, name: str, given: Any) -> int:
        def each() -> Any:
            for block in given:
                blocks.append(len(block))
                yield block

        return put(self, name, each())

    monkeypatch.setattr(S3PayloadStore, "put", watched)
    answer = stack.call("POST", f"/v1/jobs/{id_}/report")
    assert sum(blocks) == answer.body["bytes"]
    assert max(blocks) < 200 < sum(blocks)


@pytest.mark.parametrize(
    "query", [{"format": "xml"}, {"outcome": "succeeded"}, {"limit": "1"}, {"format": ""}]
)
def test_bad_questions_about_reports(stack: Deployment, query: dict[str, str]) -> None:
    id_ = stack.created(["a"])
    answer = stack.call("POST", f"/v1/jobs/{id_}/report", query=query)
    assert (answer.status, answer.body["field"]) == (400, next(iter(query)))

"""``fairlane payload-budget``: what it prints is measured on what is really built."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.jobs.words import limits
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import (
    EVENT_RESERVE_BYTES,
    GATEWAY_HEADERS,
    INLINE_ID_BYTES,
    MAX_BODY_BYTES,
    MAX_ID_BYTES,
    Limits,
)
from handlers.jobs.words.messages import Message
from scripts.budget import event
from scripts.budget.budget import body_of, budget, largest, request_of
from scripts.budget.ids import like, of_length
from scripts.budget.made import create

LIMITS = Limits()
SAMPLE = ["😀" * 8, "été-12345", 'q"uo"ted', "007"]


def run(*arguments: str) -> dict[str, Any]:
    result = CliRunner().invoke(app, ["payload-budget", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


@pytest.mark.parametrize("length", [1, 2, 36, 37, 38, 100, MAX_ID_BYTES])
def test_the_largest_request_is_as_large_as_it_can_be(length: int) -> None:
    ids = largest(of_length(length), LIMITS)
    assert {len(id_) for id_ in ids} == {length}
    size = len(body_of(ids).encode())
    one_more = len(body_of([*ids, "x" * length]).encode())
    assert size <= MAX_BODY_BYTES
    assert one_more > MAX_BODY_BYTES or len(ids) == LIMITS.max_inline_ids


def test_a_sample_counts_its_bytes_as_sent_and_as_escaped() -> None:
    found = budget(like(SAMPLE), limits=Limits(max_inline_ids=10**6), inspected=16_384)
    rows = {row.layer: row for row in found.rows}
    ids = list(islice(like(SAMPLE), found.max_ids))
    body = json.dumps(request_of(ids), ensure_ascii=False, separators=(",", ":"))
    assert rows["body"].used == len(body.encode()) <= MAX_BODY_BYTES
    # In the event every quote of the body takes two bytes, and an emoji twelve.
    used = rows["lambda_event"].used or 0
    without = len(json.dumps(event.rest_event(""), separators=(",", ":")))
    assert used - without == len(json.dumps(body)) - 2
    assert used > 1.3 * len(body.encode())


def test_variants_of_a_sample_take_as_many_bytes() -> None:
    found = list(islice(like(SAMPLE), 400))
    for n, id_ in enumerate(found):
        assert len(id_.encode()) == len(SAMPLE[n % 4].encode())
        assert len(json.dumps(id_)) == len(json.dumps(SAMPLE[n % 4]))
    assert len(set(found) - set(SAMPLE)) > 90


@pytest.mark.parametrize("length", [1, 36, MAX_ID_BYTES])
def test_every_layer_takes_the_largest_request(length: int) -> None:
    printed = run("--id-length", str(length))
    assert printed["ok"]
    for row in printed["rows"]:
        assert row["used"] is None or 0 < row["used"] <= row["limit"], row["layer"]
        if row["layer"] in {"lambda_event", "api_gateway", "waf_jobs_limit"}:
            assert row["ids_fit"] > printed["max_ids"]


def test_as_many_fit_as_it_says_and_no_more() -> None:
    rows = {row["layer"]: row for row in run()["rows"]}
    measures: dict[str, Callable[[list[str]], int]] = {
        "waf_body_rule": lambda ids: len(body_of(ids).encode()),
        "body": lambda ids: len(body_of(ids).encode()),
        "lambda_event": lambda ids: event.event_bytes(body_of(ids)),
        "inline_ids": lambda ids: (
            len(json.dumps(ids, separators=(",", ":"))) - 1
        ),  # "[" counts for a comma
    }
    for layer, measure in measures.items():
        fit = rows[layer]["ids_fit"]
        ids = list(islice(of_length(36), fit + 1))
        assert measure(ids[:-1]) <= rows[layer]["limit"] < measure(ids), layer
    assert rows["lambda_event"]["ids_fit"] == pytest.approx(153_000, rel=0.01)  # as measured on AWS


def test_the_job_is_what_a_job_is() -> None:
    few = create(request_of(list(islice(of_length(36), 100))), LIMITS)
    many = create(request_of(list(islice(of_length(36), 51_000))), LIMITS)
    assert few.stored_ids == 0
    assert 100 * 37 < few.item < 100 * 37 + 1500
    assert many.stored_ids == 51_000 * 39
    assert many.item < 1500
    assert abs(few.message - many.message) <= 1
    body = Message(job_id="0" * 28, lane=Lane.SMALL, group="").body
    assert abs(few.message - len(body)) < 20
    inline = create(request_of(list(islice(of_length(36), INLINE_ID_BYTES // 39))), LIMITS)
    assert inline.stored_ids == 0
    assert create(
        request_of(list(islice(of_length(36), INLINE_ID_BYTES // 39 + 1))), LIMITS
    ).stored_ids


def test_a_transaction_is_all_its_items() -> None:
    made = create(request_of(["a"]), LIMITS)
    assert made.item < made.transaction < made.item + 1500


def test_the_event_holds_as_many_header_bytes_as_the_gateway_takes() -> None:
    sent = event.rest_event("")["headers"]
    total = len(event.REQUEST_LINE) + sum(len(name) + len(value) for name, value in sent.items())
    assert total == GATEWAY_HEADERS
    assert event.event_bytes("") < EVENT_RESERVE_BYTES


def test_it_says_when_a_layer_is_too_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAMBDA_EVENT_BYTES", 2_000_000)
    result = CliRunner().invoke(app, ["payload-budget"])
    assert result.exit_code == 1
    monkeypatch.undo()
    assert CliRunner().invoke(app, ["payload-budget"]).exit_code == 0


def test_a_sample_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "ids"
    file.write_text("\n".join(SAMPLE), encoding="utf-8")
    sampled = run("--sample", str(file))
    assert sampled["id_bytes"] == pytest.approx((32 + 11 + 10 + 3) / 4, abs=0.01)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", b"a\x00b", b"x" * 257])
def test_a_sample_that_is_none_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "ids"
    file.write_bytes(content)
    assert CliRunner().invoke(app, ["payload-budget", "--sample", str(file)]).exit_code == 2


def test_the_page_about_sizes_has_these_numbers() -> None:
    page = (Path(__file__).parents[4] / "docs" / "sizes.md").read_text(encoding="utf-8")
    printed = run()
    rounded = {"lambda_event", "job_item", "transaction"}
    for row in printed["rows"]:
        assert f"{row['limit']:,}" in page, row["layer"]
        if row["used"] is not None and row["layer"] not in rounded:
            assert f"{row['used']:,}" in page, row["layer"]
    for number in (MAX_BODY_BYTES, printed["max_ids"], run("--id-length", "256")["max_ids"]):
        assert f"{number:,}" in page

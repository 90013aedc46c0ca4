"""A file from the command line to the last record, through the store's own check of the form."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from fairlane_client import Client, NewJob, NewUpload, Unreachable
from fairlane_client.commands import selecting
from fairlane_client.commands.jobs import app
from fairlane_client.uploads import send
from handlers.jobs.words.states import State
from scripts.local.airports import airports_by_tenant

if TYPE_CHECKING:
    from scripts.local.stack import LocalStack

TENANT = "pacific"


@pytest.fixture
def client(stack: LocalStack) -> Iterator[Client]:
    made = Client(stack.api.url, stack.issuer.token(TENANT))
    yield made
    made.close()


def submit(stack: LocalStack, *options: str) -> dict[str, Any]:
    """The job as the command shows it, when it has ended."""
    url = ["--url", stack.api.url, "--token", stack.issuer.token(TENANT), "--json"]
    what = ("--operation", "set_fields", "--params", '{"fields": {"seen": true}}')
    done = CliRunner().invoke(app, ["submit", *what, *options, *url])
    assert done.exit_code == 0, done.output
    shown: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return shown


@pytest.mark.parametrize("name", ["airports.csv", "airports.csv.gz", "airports.jsonl", "plain.txt"])
def test_a_large_file_is_uploaded_and_worked_through(
    stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(selecting, "INLINE_IDS", 100)
    ids = list(airports_by_tenant()[TENANT])[:150]
    path = tmp_path / name
    write(path, [*ids, ids[0]])
    column = ["--column", "ident"] if ".txt" not in name else []
    subject = f"upload of {name}"
    shown = submit(stack, "--subject", subject, "--ids-file", str(path), *column, "--wait")
    assert (shown["state"], shown["selection"], shown["lane"]) == ("SUCCEEDED", "upload", "bulk")
    assert (shown["total"], shown["duplicates"]) == (150, 1)
    assert shown["succeeded"] + shown["skipped"] == 150


def write(path: Path, ids: list[str]) -> None:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        if ".csv" in path.name:
            table = csv.writer(file)
            table.writerow(["name", "ident"])
            table.writerows([f'"{id_}", of course', id_] for id_ in ids)
        elif ".jsonl" in path.name:
            file.writelines(json.dumps({"n": 1, "ident": id_}) + "\n" for id_ in ids)
        else:
            file.writelines(id_ + "\n" for id_ in ids)


def test_a_small_file_is_sent_along(stack: LocalStack, tmp_path: Path) -> None:
    ids = list(airports_by_tenant()[TENANT])[:20]
    path = tmp_path / "few.csv"
    write(path, ids)
    options = ("--subject", "few", "--ids-file", str(path), "--column", "ident", "--wait")
    shown = submit(stack, *options)
    assert (shown["state"], shown["selection"], shown["lane"]) == ("SUCCEEDED", "ids", "small")
    assert shown["total"] == 20


def test_a_query_is_looked_at_and_then_run(stack: LocalStack) -> None:
    country = json.dumps({"all": [{"field": "country", "op": "eq", "value": "NZ"}]})
    options = ("--subject", "a country", "--query", country)
    seen = submit(stack, *options, "--validate-only")
    assert (seen["lane"], seen["count_is_exact"], seen["traversal"]) == ("bulk", True, "live")
    assert 0 < len(seen["sample"]) <= seen["count"]
    shown = submit(stack, *options, "--wait")
    assert (shown["state"], shown["total"]) == ("SUCCEEDED", seen["count"])


def test_the_store_refuses_another_size_name_or_format(client: Client, tmp_path: Path) -> None:
    """The local AWS checks a form's signature and conditions as S3 does."""
    path = tmp_path / "ids"
    path.write_bytes(b'"a"\n')
    slot = client.upload_address(NewUpload(format="jsonl"))
    for changed in (
        {"key": slot.fields["key"] + "x"},
        {"x-amz-meta-format": "csv"},
        {"x-amz-meta-column": "more"},
    ):
        other = slot.model_copy(update={"fields": {**slot.fields, **changed}})
        with pytest.raises(Unreachable, match="403"):
            send(other, path, sent=lambda _: None)
    path.write_bytes(b"")
    with pytest.raises(Unreachable, match="400"):
        send(slot, path, sent=lambda _: None)
    path.write_bytes(b'"a"\n')
    pieces: list[int] = []
    send(slot, path, sent=pieces.append)
    assert sum(pieces) == 4
    job = client.submit(
        NewJob(
            operation="set_fields",
            subject="form",
            params={"fields": {"seen": True}},
            upload_id=slot.upload_id,
        )
    )
    ended = client.wait(job.id, timeout=600)
    assert (ended.state, ended.total, ended.skipped) == (State.SUCCEEDED, 1, 1)

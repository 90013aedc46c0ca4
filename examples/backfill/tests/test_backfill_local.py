"""The whole migration on a local stack, with fewer invoices than README.md tells of."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from backfill import SUBJECT, commas, run, said
from fairlane_client import Client, NewJob
from make_invoices import COMMA_EVERY, NOTHING_EVERY, write

HERE = Path(__file__).parents[1]
COUNT = 1000
FAILED = COUNT // COMMA_EVERY
"""The thousandth has no currency, and so no comma either."""


def fairlane(folder: Path, *words: str) -> str:
    command = ["fairlane", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The app and its settings, and nothing of the operations: these are installed."""
    place = tmp_path_factory.mktemp("backfill")
    for name in ("cdk.json", "backfill_app.py", "settings.local.json"):
        shutil.copy(HERE / name, place)
    write(place, COUNT)
    return place


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    """Of a local stack with the invoices."""
    chosen = ("--records", "invoices.jsonl", "--settings", "settings.local.json", "--no-search")
    try:
        shown = fairlane(folder, "local", "up", *chosen)
        [address] = re.findall(r"^API +(\S+)$", shown, re.MULTILINE)
        with Client(address, fairlane(folder, "token", "--tenant", "billing").strip()) as made:
            yield made
    finally:
        fairlane(folder, "local", "down")


def test_what_fails_is_looked_at_and_runs_again(client: Client, folder: Path) -> None:
    first = run(client, folder / "ids.csv", folder / "customers.csv")
    assert (first.state, first.lane) == ("SUCCEEDED", "bulk")
    assert (first.succeeded, first.failed) == (COUNT - FAILED, FAILED)
    assert f"{FAILED - 1} a comma may be" in said(client, first)

    second = commas(client, first.id)
    assert (second.state, second.succeeded, second.failed) == ("SUCCEEDED", FAILED - 1, 0)
    assert commas(client, first.id).id == second.id

    nothing = [f"inv-{each:07}" for each in range(NOTHING_EVERY, COUNT + 1, NOTHING_EVERY)]
    fields = {"fields": {"total": "0.00 EUR"}}
    corrected = NewJob(operation="set_fields", subject=SUBJECT, ids=nothing, params=fields)
    assert client.wait(client.submit(corrected).id).succeeded == len(nothing)

    last = client.wait(client.retry(first.id, failed_only=True).id)
    assert (last.succeeded, last.skipped, last.failed) == (len(nothing), FAILED - 1, 0)

    fairlane(folder, "local", "down", "--keep")
    kept = (folder / ".fairlane" / "local" / "default.records.jsonl").read_text(encoding="utf-8")
    invoices = [json.loads(line) for line in kept.splitlines()]
    assert len([each for each in invoices if "amount" in each and "total" not in each]) == COUNT

"""``fairlane jobs items|report``: every record with its reason; a file that is whole or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fairlane_client import Client, ItemView, NotDownloaded, ReportView, Unreachable
from fairlane_client.commands import results
from fairlane_client.problems import ReportTooLarge
from handlers.jobs.results.items import ItemOutcome, ItemResult
from handlers.jobs.results.report import COLUMNS, ReportFormat, _csv, _ReportWriter
from handlers.testing.world import memory_world
from tests.support import views
from tests.support.commands import JOB, invoke, words

ITEMS = {
    "failed": [ItemView(id="007", reason="[no] such record"), ItemView(id="Ä b", reason="r")],
    "skipped": [ItemView(id="7", reason="already there")],
    "refused": [ItemView(id="8", reason="400", sink="webhook")],
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def items(self: Client, job_id: str, outcome: str, *, limit: int) -> Iterator[ItemView]:
        assert job_id == JOB
        asked.append(outcome)
        yield from ITEMS[outcome]

    monkeypatch.setattr(Client, "items", items)
    return asked


def test_items_are_listed_for_programs(asked: list[str]) -> None:
    lines = invoke("items", JOB, "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"outcome": "failed", "id": "007", "reason": "[no] such record"},
        {"outcome": "failed", "id": "Ä b", "reason": "r"},
        {"outcome": "skipped", "id": "7", "reason": "already there"},
        {"outcome": "refused", "id": "8", "reason": "400", "sink": "webhook"},
    ]
    assert asked == list(ItemOutcome)


def test_items_are_listed_for_people(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """In as many tables as it takes."""
    monkeypatch.setattr(results, "TABLE", 3)
    shown = invoke("items", JOB).stdout
    for part in ("007", "[no] such record", "Ä b", "already there", "webhook"):
        assert part in shown
    assert shown.count("outcome") == 2


def test_only_what_is_asked_for_is_listed(asked: list[str]) -> None:
    options = ("--outcome", "skipped", "--outcome", "failed", "--outcome", "skipped")
    lines = invoke("items", JOB, *options, "--json").stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["7", "007", "Ä b"]
    assert asked == ["skipped", "failed"]


def test_no_items_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "items", lambda *_, **__: iter(()))
    assert invoke("items", JOB, "--outcome", "failed").stdout == "no record: failed\n"
    assert invoke("items", JOB, "--json").stdout == ""


@pytest.mark.parametrize(
    ("verb", "option", "value"),
    [("items", "--outcome", "changed"), ("report", "--outcome", "x"), ("report", "--format", "x")],
)
def test_what_there_is_not_is_refused_by_its_option(verb: str, option: str, value: str) -> None:
    result = invoke(verb, JOB, option, value)
    assert result.exit_code == 2
    assert option in result.stderr


# --- reports ----------------------------------------------------------------------------------

REPORT = ReportView.model_validate(
    {**views.REPORT, "url": "https://bucket.example/reports/j1?" + "x" * 200, "count": 3}
)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    made: list[tuple[str, str]] = []

    def report(self: Client, job_id: str, *, form: str, outcome: str) -> ReportView:
        made.append((form, outcome))
        return REPORT

    monkeypatch.setattr(Client, "report", report)
    return made


def fetching(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], object] = lambda _: None
) -> list[Path]:
    fetched: list[Path] = []

    def fetch(report: ReportView, path: Path, *, got: Callable[[int], None]) -> None:
        assert report == REPORT
        got(report.bytes)
        act(path)
        fetched.append(path)

    monkeypatch.setattr(results, "fetch", fetch)
    return fetched


def test_the_address_is_shown_in_one_piece(made: list[tuple[str, str]]) -> None:
    result = invoke("report", JOB, "--outcome", "failed")
    assert result.exit_code == 0
    assert REPORT.url in result.stdout.splitlines()
    assert "3 records" in result.stdout
    assert made == [("csv", "failed")]
    assert json.loads(invoke("report", JOB, "--json").stdout)["url"] == REPORT.url


@pytest.mark.parametrize(
    ("name", "options", "form"),
    [("r.csv", (), "csv"), ("r.jsonl", (), "jsonl"), ("r.jsonl", ("--format", "csv"), "csv")],
)
def test_a_report_is_downloaded(
    monkeypatch: pytest.MonkeyPatch,
    made: list[tuple[str, str]],
    tmp_path: Path,
    name: str,
    options: tuple[str, ...],
    form: str,
) -> None:
    fetched = fetching(monkeypatch)
    to = tmp_path / name
    shown = json.loads(invoke("report", JOB, "--to", str(to), *options, "--json").stdout)
    assert (shown["file"], shown["count"]) == (str(to), 3)
    assert (fetched, made) == ([to], [(form, "all")])


@pytest.mark.parametrize("to", ["", "no/folder/r.csv"])
def test_a_place_that_cannot_be_is_refused_before_a_report_is_made(
    made: list[tuple[str, str]], tmp_path: Path, to: str
) -> None:
    result = invoke("report", JOB, "--to", str(tmp_path / to))
    assert result.exit_code == 2
    assert "--to" in result.stderr
    assert made == []


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("error", "code"), [(NotDownloaded("gone; at https://x"), 1), (OSError("disk full"), 2)]
)
def test_a_download_that_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: Exception, code: int
) -> None:
    def fail(_: Path) -> None:
        raise error

    fetching(monkeypatch, fail)
    result = invoke("report", JOB, "--to", str(tmp_path / "r.csv"))
    assert (result.exit_code, result.stdout) == (code, "")
    assert str(error) in words(result)


@pytest.fixture
def too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    def report(self: Client, job_id: str, *, form: str, outcome: str) -> ReportView:
        raise ReportTooLarge(422, "report_too_large", "list them instead")

    monkeypatch.setattr(Client, "report", report)


@pytest.mark.usefixtures("too_large")
@pytest.mark.parametrize("form", ReportFormat)
def test_a_report_that_is_too_large_is_written_from_pages(
    asked: list[str], tmp_path: Path, form: ReportFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes as the API's own report over the same records."""
    monkeypatch.setitem(ITEMS, "skipped", [ItemView(id="=1+1", reason='\'a, "b"\nc')])
    to = tmp_path / "r"
    shown = json.loads(
        invoke("report", JOB, "--to", str(to), "--format", form.value, "--json").stdout
    )
    rows = [
        ItemResult(item.id, ItemOutcome(outcome), item.reason, item.sink)
        for outcome in ItemOutcome
        for item in ITEMS[outcome.value]
    ]
    assert to.read_bytes() == bytes_of(rows, form)
    assert (shown["count"], shown["file"]) == (4, str(to))
    assert shown["bytes"] == to.stat().st_size
    assert asked == list(ItemOutcome)
    assert [file.name for file in tmp_path.iterdir()] == ["r"]


@pytest.mark.usefixtures("too_large", "asked")
def test_a_report_of_one_outcome_reads_only_that(asked: list[str], tmp_path: Path) -> None:
    to = tmp_path / "r.jsonl"
    said = invoke("report", JOB, "--to", str(to), "--outcome", "refused").stdout
    assert asked == ["refused"]
    assert said.startswith("1 records")


@pytest.mark.usefixtures("too_large")
def test_pages_that_end_early_leave_the_older_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def items(self: Client, job_id: str, outcome: str, *, limit: int) -> Iterator[ItemView]:
        yield ITEMS["failed"][0]
        raise Unreachable("nobody answered")

    monkeypatch.setattr(Client, "items", items)
    to = tmp_path / "r.csv"
    to.write_text("before")
    assert invoke("report", JOB, "--to", str(to)).exit_code != 0
    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


@pytest.mark.usefixtures("too_large")
def test_a_report_that_is_too_large_has_no_address(asked: list[str]) -> None:
    result = invoke("report", JOB)
    assert result.exit_code != 0
    assert "report_too_large" in words(result)
    assert asked == []


def bytes_of(rows: list[ItemResult], form: ReportFormat) -> bytes:
    """As the API writes them."""
    writer = _ReportWriter(memory_world(), None, (), form, lambda: False)  # type: ignore[arg-type]  # no job is read
    head = [_csv(COLUMNS)] if form is ReportFormat.CSV else []
    return "".join([*head, *map(writer._line, rows)]).encode()

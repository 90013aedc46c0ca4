"""Job ids by their beginnings: shown so that they tell jobs apart, taken when only one has it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from fairlane_client import Client, JobView
from fairlane_client.client import _time
from fairlane_client.commands import ids, tables
from fairlane_client.commands.app import app
from handlers.web import job_list
from handlers.web.job_list import LATEST
from handlers.web.openapi_build import document
from tests.support.views import job_view

FIRST = "01a2287f89f0" + "a" * 20
SAME_MOMENT = "01a2287f89f0" + "ab" * 10
LATER = "01a2287f89f1" + "0" * 20


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> list[tuple[datetime, datetime]]:
    """The tenant has these three jobs; what was asked for."""
    asked: list[tuple[datetime, datetime]] = []

    def jobs(_: Client, *, created_after: datetime, created_before: datetime) -> Iterator[JobView]:
        asked.append((created_after, created_before))
        for id_ in (LATER, SAME_MOMENT, FIRST):
            created = datetime.fromtimestamp(int(id_[:12], 16) / 1000, tz=UTC)
            if created_after <= created < created_before:
                yield job_view(id_)

    monkeypatch.setattr(Client, "jobs", jobs)
    monkeypatch.setattr(Client, "get", lambda _, job_id: job_view(job_id))
    ended = job_view(state="SUCCEEDED")
    monkeypatch.setattr(Client, "watch", lambda *_, **__: iter([ended]))
    return asked


def invoke(*arguments: str) -> Result:
    where = ("--url", "http://127.0.0.1:1/x", "--token", "t")
    return CliRunner().invoke(app, ["jobs", *arguments, *where])


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("01a2287f89f1", LATER),
        ("01A2287F89F1", LATER),
        ("01a2287f89f0aaa", FIRST),
        (SAME_MOMENT[:14], SAME_MOMENT),
        (FIRST[:31], FIRST),
    ],
)
@pytest.mark.usefixtures("there")
def test_the_beginning_of_one_id_is_enough(given: str, found: str) -> None:
    result = invoke("get", given, "--json")
    assert result.exit_code == 0
    assert found in result.stdout


@pytest.mark.usefixtures("there")
def test_of_several_it_is_said_which() -> None:
    result = invoke("get", FIRST[:12])
    assert result.exit_code == 2
    said = " ".join(result.stderr.split())
    assert f"begin with {FIRST[:12]}: {SAME_MOMENT}, {FIRST}; give more characters" in said


@pytest.mark.usefixtures("there")
def test_the_beginning_of_none_is_said() -> None:
    result = invoke("get", "ffff")
    assert result.exit_code == 2
    assert "begins with ffff" in result.stderr


@pytest.mark.parametrize("given", [FIRST, FIRST.upper()])
def test_a_whole_id_is_looked_for_by_the_api(
    there: list[tuple[datetime, datetime]], given: str
) -> None:
    result = invoke("get", given, "--json")
    assert result.exit_code == 0
    assert FIRST in result.stdout
    assert there == []


@pytest.mark.parametrize("verb", ["get", "watch", "cancel", "items"])
@pytest.mark.parametrize("given", ["", "zzz", "no-id", FIRST + "0", "\udcff"])
def test_what_no_id_begins_with_is_refused_and_not_sent(
    there: list[tuple[datetime, datetime]], verb: str, given: str
) -> None:
    result = invoke(verb, given)
    assert (result.exit_code, there) == (2, [])
    said = " ".join(result.stderr.split())
    assert f"no job has an id that begins with {given!r}: ids are 32 hexadecimal digits" in said


def test_only_jobs_of_that_time_are_looked_through(
    there: list[tuple[datetime, datetime]],
) -> None:
    invoke("get", LATER[:12])
    [(after, before)] = there
    assert (before - after).total_seconds() == 0.001
    invoke("get", "f")
    assert there[-1][0] <= there[-1][1] <= datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def test_the_time_is_where_the_backend_puts_it() -> None:
    assert 16**ids.TIME - 1 == LATEST
    schema = document()["components"]["schemas"]["JobAnswer"]["properties"]["id"]
    assert schema["pattern"] == f"^[0-9a-f]{{{ids.WHOLE}}}$"


def test_the_api_reads_the_times_that_are_sent() -> None:
    """To the millisecond, since that is all that the beginning of an id says."""
    after, before = ids._times(LATER[:12])
    millisecond = int(LATER[:12], 16)
    sent = [("created_after", after), ("created_before", before)]
    read = [job_list._time(name, _time(moment)) for name, moment in sent]
    assert read == [millisecond, millisecond + 1]


def test_what_is_shown_tells_the_shown_jobs_apart() -> None:
    assert ids.short([FIRST, LATER]) == [FIRST[:12], LATER[:12]]
    assert ids.short([FIRST, SAME_MOMENT, LATER]) == [
        id_[:14] for id_ in (FIRST, SAME_MOMENT, LATER)
    ]
    assert ids.short([]) == []
    assert ids.short([FIRST, FIRST]) == [FIRST[:12]] * 2


# --- tables -----------------------------------------------------------------------------------


def printed(jobs: list[JobView], width: int, *, whole: bool) -> list[str]:
    out = StringIO()
    Console(width=width, file=out).print(tables.many(jobs, whole_ids=whole, width=width))
    return out.getvalue().splitlines()


def test_a_list_fits_80_columns_and_nothing_is_cut() -> None:
    subject = "eu-west/products"
    counts = {"total": 128_000, "succeeded": 100_000, "failed": 12_345, "skipped": 12_345}
    jobs = [
        job_view(FIRST, operation="adjust_number", subject=subject, state="CANCELLING", **counts),
        job_view(LATER, operation="delete_records", state="SUCCEEDED", **counts),
    ]
    lines = printed(jobs, 80, whole=False)
    assert max(map(len, lines)) <= 80
    text = "".join("".join(lines).split())
    for part in (FIRST[:12], "CANCELLING", "124690/128000", "12345", "03:04:05"):
        assert part in text
    assert not any("…" in line for line in lines)


def test_in_a_pipe_ids_are_whole_and_lines_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [job_view(FIRST, subject="s" * 250), job_view(LATER)]
    monkeypatch.setattr(Client, "jobs", lambda *_, **__: iter(many))
    result = invoke("list")
    assert "\x1b" not in result.stdout
    assert len(result.stdout.splitlines()) == 3
    assert FIRST in result.stdout
    assert "s" * 250 in result.stdout

"""Rows for people: ids stand whole at 80 columns."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from scripts.commands import local
from scripts.commands.rows import print_rows
from scripts.local.state import StackFolder, State

COLUMNS = ("lane", "message", "job", "state", "problem")
WIDE = [
    {"lane": "small", "message": "m" * 36, "job": "j" * 32, "state": "FAILED", "problem": ""},
    {"lane": "bulk", "message": "n" * 36, "job": "k" * 32, "state": "", "problem": "p" * 100},
]
NARROW = [{"lane": "small", "state": "FAILED"}, {"lane": "bulk", "state": "QUEUED"}]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns."""
    for name, value in {"FORCE_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("terminal")
def test_what_is_too_wide_for_the_terminal_is_a_block_for_each_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_rows(COLUMNS, WIDE)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    words = [line.split() for line in lines]
    for id_ in ("m" * 36, "j" * 32, "n" * 36, "k" * 32):
        assert [id_] in [each[1:] for each in words]
    assert words.count([]) == 1  # between the two
    assert [each[0] for each in words if each[:1] == ["problem"]] == ["problem"]
    assert "".join(lines).count("p") == len("p" * 100) + "problem".count("p")


@pytest.mark.usefixtures("terminal")
def test_what_fits_is_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(("lane", "state"), NARROW)
    assert len(capsys.readouterr().out.splitlines()) == 6


def test_in_a_pipe_each_row_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(COLUMNS, WIDE)
    said = capsys.readouterr().out
    assert "\x1b" not in said
    lines = [line for line in said.splitlines() if "j" * 32 in line or "k" * 32 in line]
    assert [line for line in lines if "m" * 36 in line or "p" * 100 in line] == lines
    assert len(lines) == 2


@pytest.mark.usefixtures("terminal")
def test_the_address_of_a_local_stack_can_be_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://127.0.0.1:38703/_aws/execute-api/b2ad2909/live"
    monkeypatch.setattr(local, "names", lambda: ["default", "other"])
    monkeypatch.setattr(StackFolder, "read", lambda _: State(api_url=address, wanted=2))
    shown = CliRunner().invoke(local.app, ["status"]).stdout.splitlines()
    assert sum(address in line for line in shown) == 2
    assert max(map(cell_len, shown)) <= 80

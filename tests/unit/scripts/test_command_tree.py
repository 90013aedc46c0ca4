"""Every command there is: its help at 80 columns and in a pipe, wrong use, and Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from rich.cells import cell_len
from typer.testing import CliRunner

from fairlane_client.cli import INTERRUPTED
from fairlane_client.commands.app import app
from tests.support.interrupted import SILENT, interrupted, tree

LEAVES: Final = dict(tree())
GROUPS: Final = sorted({words[:-1] for words in LEAVES})
WIDTH: Final = 80
A_TERMINAL: Final = {"COLUMNS": str(WIDTH), "TERM": "xterm-256color"}

API: Final = ("--url", "http://127.0.0.1:9", "--token", "t")
STACK: Final = ("--stack", "Fairlane")
JOB: Final = "0" * 32
WAITING: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("audit",): STACK,
    ("aws-check",): (*STACK, "--token", "t"),
    ("bench",): (),
    ("demo",): (),
    ("dispatches", "list"): STACK,
    ("dispatches", "replay"): STACK,
    ("dlq", "list"): STACK,
    ("dlq", "put-back"): ("--message", "m", *STACK),
    ("dlq", "redrive"): STACK,
    ("dlq", "set-aside"): ("--job", "j", "--why", "w", *STACK),
    ("doctor",): STACK,
    ("drift",): ("--tenant", "t", *STACK),
    ("effects", "list"): STACK,
    ("effects", "replay"): STACK,
    ("events", "key"): ("--tenant", "t", *STACK),
    ("events", "list"): STACK,
    ("events", "replay"): STACK,
    ("index", "check"): STACK,
    ("index", "create"): STACK,
    ("jobs", "cancel"): (JOB, *API),
    ("jobs", "get"): (JOB, *API),
    ("jobs", "items"): (JOB, "--outcome", "failed", *API),
    ("jobs", "list"): API,
    ("jobs", "pause"): (JOB, *API),
    ("jobs", "report"): (JOB, *API),
    ("jobs", "resume"): (JOB, *API),
    ("jobs", "retry"): (JOB, *API),
    ("jobs", "submit"): ("--operation", "o", "--subject", "s", "--id", "1", *API),
    ("jobs", "watch"): (JOB, *API),
    ("lanes",): API,
    ("local", "up"): ("--empty", "--no-search"),
    ("opensearch", "up"): (),
    ("rates", "set"): ("--records-per-second", "1", *STACK),
    ("rates", "show"): STACK,
    ("tenants", "set"): ("--tenant", "t", "--small", "1", *STACK),
    ("tenants", "show"): ("--tenant", "t", *STACK),
    ("verify",): ("lane-isolation",),
}
"""Each command that waits for something outside, and what it takes to come there."""
AT_ONCE: Final = {
    *(("cost",), ("dashboard",), ("payload-budget",), ("token",), ("simulate",), ("soak",)),
    *(("local", "status"), ("local", "down"), ("local", "deploy")),
    *(("opensearch", "status"), ("opensearch", "down")),
    *(("operations", "list"), ("operations", "check"), ("operations", "try")),
}
"""They only calculate, or look at files, where no stack is up: Ctrl-C is Python's own affair.
test_command_start.py sends it while they are imported."""


def shown(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, list(words), env=A_TERMINAL)
    return done.exit_code, done.output


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if cell_len(line) > WIDTH]


@pytest.mark.parametrize("words", [*GROUPS, *LEAVES], ids=" ".join)
def test_help_fits_80_columns_and_has_no_colours(words: tuple[str, ...]) -> None:
    status, said = shown(*words, "--help")
    assert status == 0
    assert too_wide(said) == []
    assert "\x1b" not in said
    assert said.lstrip().startswith("Usage: ")


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_option_says_what_it_is(words: tuple[str, ...]) -> None:
    command: Any = LEAVES[words]
    options = [each for each in command.params if each.name != "help"]
    assert command.help
    assert [each.name for each in options if not getattr(each, "help", None)] == []


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_wrong_use_is_status_2_in_few_words(words: tuple[str, ...]) -> None:
    status, said = shown(*words, "--sideways")
    assert status == 2
    assert "No such option" in said
    assert "Traceback" not in said
    assert "\x1b" not in said


def test_a_pipe_gets_no_colours_from_the_program_itself() -> None:
    """Whatever the terminal around it is."""
    fairlane = Path(sys.executable).with_name("fairlane")
    for words in (["--help"], ["--version"], ["operations", "list"], ["explode"]):
        done = subprocess.run(
            [fairlane, *words], capture_output=True, check=False, env={**os.environ, **A_TERMINAL}
        )
        assert b"\x1b" not in done.stdout + done.stderr


def test_ctrl_c_ends_every_command_that_waits(tmp_path: Path) -> None:
    assert {*WAITING, *AT_ONCE} == set(LEAVES)
    commands = [[*words, *more] for words, more in WAITING.items()]
    for words, (moment, status, said) in zip(
        commands, interrupted(commands, tmp_path), strict=True
    ):
        assert moment != SILENT, (words, said)
        assert status == INTERRUPTED, (words, moment, said)
        assert "Traceback" not in said, (words, said)


def test_the_check_sees_a_wide_line() -> None:
    assert too_wide("x" * WIDTH + "\n" + "表" * 41) == ["表" * 41]

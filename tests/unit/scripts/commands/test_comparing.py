"""A command that compares says by its status whether it compared."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer

from fairlane_client.commands.errors import CommandError
from scripts.cli import COMMANDS
from scripts.commands.comparing import TROUBLE, comparing


def exits(error: Exception) -> int:
    try:
        with comparing():
            raise error
    except CommandError as ended:
        return ended.status
    except typer.Exit as ended:
        return ended.exit_code


@pytest.mark.parametrize("error", [CommandError("not up"), RuntimeError("a bug"), OSError("disk")])
def test_c116_what_keeps_a_command_from_comparing_is_no_difference(error: Exception) -> None:
    assert exits(error) == TROUBLE


def test_c116_a_difference_stays_one() -> None:
    assert exits(typer.Exit(1)) == 1


def test_c116_every_command_that_compares_says_both() -> None:
    one = {command.name: command.load().help or "" for command in COMMANDS}
    compare = {name for name, text in one.items() if "Exit status 1" in " ".join(text.split())}
    assert compare == {
        "aws-check",
        "bench",
        "demo",
        "doctor",
        "drift",
        "payload-budget",
        "simulate",
        "soak",
        "verify",
    }
    assert [
        name for name in sorted(compare) if "2: trouble" not in " ".join(one[name].split())
    ] == []


def test_c116_drift_of_a_stack_that_is_not_there_ends_with_trouble() -> None:
    asked = [sys.executable, "-m", "fairlane_client.cli", "drift", "--tenant", "a", "--name", "no"]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (TROUBLE, "")
    assert ended.stderr.startswith("error: ")

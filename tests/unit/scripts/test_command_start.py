"""What the ``fairlane`` command imports for what it is asked, and how it ends. A list of modules is
the same on every machine; a time is not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from fairlane_client import __version__
from fairlane_client.commands import lazy
from fairlane_client.commands.app import OWN, app
from fairlane_client.commands.errors import CommandError
from fairlane_client.commands.exits import Exit
from fairlane_client.commands.lazy import Command
from scripts.cli import COMMANDS, DEVELOPERS, OPERATORS

ROOT: Final = Path(__file__).parents[3]
NOWHERE: Final = ("--url", "http://127.0.0.1:9", "--token", "t")
PROGRAM: Final = """
import json, sys
from fairlane_client.cli import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["fairlane", *arguments]
    try:
        main()
    except SystemExit:
        pass
print(*sorted(sys.modules), file=sys.stderr)
"""
BACKEND: Final = frozenset({"handlers", "infra", "scripts", "tests", "boto3", "botocore"})
HEAVY: Final = frozenset(
    {"opensearchpy", "aws_cdk", "aws_lambda_powertools", "cryptography", "jwt"}
)


def imported(*commands: Sequence[str]) -> frozenset[str]:
    """The modules that these commands have imported, one after another in one process."""
    program = [sys.executable, "-c", PROGRAM, json.dumps(commands)]
    run = subprocess.run(program, capture_output=True, text=True, check=True)
    return frozenset(run.stderr.splitlines()[-1].split())


def packages(modules: frozenset[str]) -> frozenset[str]:
    return frozenset(name.partition(".")[0] for name in modules)


CALLS: Final = [
    ("lanes", "--once", *NOWHERE),
    ("jobs", "list", *NOWHERE),
    ("jobs", "get", "0" * 32, *NOWHERE),
    ("jobs", "watch", "0" * 32, "--timeout", "0", *NOWHERE),
    ("jobs", "submit", "--operation", "o", "--subject", "s", "--id", "1", "--json", *NOWHERE),
    ("jobs", "--help"),
]


def test_what_only_calls_the_api_imports_nothing_else() -> None:
    modules = imported(*CALLS)
    assert packages(modules) & (BACKEND | HEAVY) == set()
    assert {"urllib3", "rich", "fairlane_client.commands.selecting"} <= modules


def test_a_call_without_a_table_imports_no_tables() -> None:
    assert "rich" not in packages(imported(("jobs", "list", "--json", *NOWHERE)))


def test_the_list_of_commands_loads_none_of_them() -> None:
    modules = imported(("--help",), ("--version",))
    assert "scripts.cli" in modules
    known = {"scripts.commands", "scripts.commands.needs"}
    assert {name for name in modules if name.startswith("scripts.commands")} <= known
    assert packages(modules) & {"boto3", "handlers", "urllib3"} == set()


def test_a_local_stack_is_found_without_what_starts_one() -> None:
    """Its tokens take a key, and its state a look at its processes."""
    modules = imported(("jobs", "list", "--tenant", "t", "--name", "never-started"))
    assert "scripts.local.target" in modules
    found = packages(modules) & (BACKEND | HEAVY)
    assert found <= {"scripts", "jwt", "cryptography"}
    assert "scripts.local.stack" not in modules


def test_the_check_sees_what_a_heavy_command_imports() -> None:
    modules = imported(("dlq", "list", "--help"))
    assert {"handlers", "boto3"} <= packages(modules)


# --- the table --------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [*OWN, *COMMANDS], ids=lambda command: command.name)
def test_a_command_is_listed_with_its_own_first_line(command: Command) -> None:
    own = command.load().help or ""
    assert " ".join(own.split("\n\n")[0].split()) == command.help


def test_nothing_else_is_a_command() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for command in (*OWN, *OPERATORS, *DEVELOPERS):
        assert f"\n  {command.name} " in shown
    assert CliRunner().invoke(app, ["explode"]).exit_code == 2


def test_a_missing_part_is_one_sentence() -> None:
    with pytest.raises(CommandError) as caught:
        Command("x", "no_such_module_here:app", "", needs="a checkout").load()
    expected = "`fairlane x` needs a checkout (no_such_module_here is not installed)"
    assert str(caught.value) == expected
    with pytest.raises(ModuleNotFoundError):
        Command("x", "no_such_module_here:app", "").load()


def test_the_version_is_that_of_the_client_and_of_what_adds_commands() -> None:
    lines = CliRunner().invoke(app, ["--version"]).stdout.splitlines()
    assert lines == [f"fairlane-client {__version__}", f"fairlane {__version__}"]
    assert len(lazy.points()) == 1


# --- completion and the end -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("fairlane d", {"dashboard", "demo", "dispatches", "dlq", "doctor", "drift"}),
        ("fairlane jobs re", {"report", "resume", "retry"}),
        ("fairlane dlq ", {"list", "put-back", "redrive", "set-aside"}),
        ("fairlane jobs list --cr", {"--created-after", "--created-before"}),
    ],
)
def test_a_shell_completes(typed: str, found: set[str]) -> None:
    words = typed.split(" ")
    environment = {
        **os.environ,
        "_FAIRLANE_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    run = subprocess.run(
        [Path(sys.executable).parent / "fairlane"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert set(run.stdout.split()) == found, run.stderr


STOPPED: Final = """
import os, signal, sys
number, module = int(sys.argv.pop(1)), sys.argv.pop(1)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
def stop():
    try:
        os.kill(os.getpid(), number)
        for _ in range(100):  # until the signal is there
            pass
    except BaseException:
        print("dropped")
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            stop()
sys.meta_path.insert(0, Stop())
if module == "":
    import atexit
    atexit.register(stop)
from fairlane_client.cli import main
main()
"""
"""The command, which gets a signal when it begins to import a module; without one, when it exits.
Some compiled code drops an exception that comes while it is imported, as this does."""


def stopped(
    number: signal.Signals, module: str, *, under: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", STOPPED, str(number.value), module, "jobs", "list", *NOWHERE]
    return subprocess.run([*under, *program], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "moment", ["fairlane_client.commands.app", "typer.main", "urllib3", "fairlane_client.models"]
)
def test_ctrl_c_ends_it_without_a_traceback_from_the_first_import_on(moment: str) -> None:
    run = stopped(signal.SIGINT, moment)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


def test_ctrl_c_while_it_exits_prints_nothing() -> None:
    run, undisturbed = stopped(signal.SIGINT, ""), stopped(signal.SIGINT, "no such module")
    assert undisturbed.returncode == Exit.UNREACHABLE
    assert (run.returncode, run.stdout, run.stderr) == (130, "", undisturbed.stderr)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_being_ended_is_not_a_crash(number: signal.Signals) -> None:
    run = stopped(number, "urllib3")
    assert (run.returncode, run.stderr) == (128 + number, "")


def test_a_closed_terminal_does_not_end_it_under_nohup() -> None:
    run = stopped(signal.SIGHUP, "urllib3", under=["nohup"])
    assert run.returncode == Exit.UNREACHABLE

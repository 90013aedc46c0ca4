"""A command's own stack takes a name nobody uses, and goes when the command ends."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from scripts.bench.place import Place
from scripts.load import own
from scripts.local.endings import STOPPING
from scripts.local.errors import AlreadyUp, InUse, LocalError
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps

QUIET = Steps(quiet=True)


@pytest.fixture
def downs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the stacks that were taken down; ``up`` does nothing."""
    names: list[str] = []

    def down(self: LocalStack) -> int:
        names.append(self.name)
        return 0

    monkeypatch.setattr(LocalStack, "up", lambda self: self)
    monkeypatch.setattr(LocalStack, "down", down)
    return names


def test_the_name_of_another_commands_stack_is_left_to_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    taken = {"demo": AlreadyUp("up"), "demo-2": InUse("starting")}

    def up(self: LocalStack) -> LocalStack:
        if self.name in taken:
            raise taken[self.name]
        return self

    monkeypatch.setattr(LocalStack, "up", up)
    made = own.up("demo", steps=QUIET, root=tmp_path)
    assert (made.name, made.measured) == ("demo-3", True)


def test_a_stack_that_cannot_start_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def up(self: LocalStack) -> LocalStack:
        raise LocalError("cannot")

    monkeypatch.setattr(LocalStack, "up", up)
    with pytest.raises(LocalError, match="cannot"):
        own.up("demo", steps=QUIET, root=tmp_path)


@pytest.mark.parametrize(("keep", "expected"), [(False, ["demo"]), (True, [])])
def test_it_is_taken_down_unless_it_is_kept(
    downs: list[str], tmp_path: Path, keep: object, expected: list[str]
) -> None:
    with own.taken_down(LocalStack("demo", root=tmp_path), steps=QUIET, keep=bool(keep)):
        assert downs == []
    assert downs == expected


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, LocalError])
def test_an_interrupted_command_keeps_nothing(
    downs: list[str], tmp_path: Path, ending: type[BaseException]
) -> None:
    with (
        pytest.raises(ending),
        own.taken_down(LocalStack("demo", root=tmp_path), steps=QUIET, keep=True),
    ):
        raise ending
    assert downs == ["demo"]


# --- Ctrl-C, and Ctrl-C again -----------------------------------------------------------------


def press(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.fixture
def python_handlers() -> Iterator[None]:
    """As the command has them."""
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def exits(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, exits)
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


@pytest.fixture
def told() -> tuple[Steps, io.StringIO]:
    out = io.StringIO()
    return Steps(console=Console(file=out, width=80)), out


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, told: tuple[Steps, io.StringIO]) -> list[str]:
    """What the user has read when a stack begins to be taken down, and that it was. Ctrl-C is
    pressed twice meanwhile."""
    seen: list[str] = []

    def down(self: LocalStack) -> int:
        seen.append(told[1].getvalue())
        press()
        press()
        seen.append("down")
        return 0

    monkeypatch.setattr(LocalStack, "down", down)
    return seen


@pytest.mark.usefixtures("python_handlers")
@pytest.mark.parametrize(
    ("first", "ending"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)],
)
def test_a_second_ctrl_c_leaves_nothing_of_the_stack(
    seen: list[str],
    told: tuple[Steps, io.StringIO],
    tmp_path: Path,
    first: signal.Signals,
    ending: type[BaseException],
) -> None:
    handler = signal.getsignal(signal.SIGINT)
    with (
        pytest.raises((KeyboardInterrupt, ending)),
        own.taken_down(LocalStack("demo", root=tmp_path), steps=told[0], keep=True),
    ):
        press(first)
    assert seen == [f"{STOPPING}\n", "down"]
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.usefixtures("python_handlers")
def test_ctrl_c_at_the_end_waits_until_the_stack_is_down(
    seen: list[str], told: tuple[Steps, io.StringIO], tmp_path: Path
) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        own.taken_down(LocalStack("demo", root=tmp_path), steps=told[0]),
    ):
        pass
    assert seen[1:] == ["down"]


@pytest.mark.usefixtures("python_handlers")
def test_the_stack_of_the_benches_goes_wholly_too(
    seen: list[str], told: tuple[Steps, io.StringIO], tmp_path: Path
) -> None:
    place = Place(told[0])
    place._stack = LocalStack("bench", root=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        place.close()
    assert seen[1:] == ["down"]


@pytest.mark.usefixtures("python_handlers")
def test_a_second_ctrl_c_leaves_nothing_of_a_stack_that_is_starting(
    monkeypatch: pytest.MonkeyPatch, told: tuple[Steps, io.StringIO], tmp_path: Path
) -> None:
    def interrupted(self: LocalStack, *_: Any) -> None:
        self._save(wanted=1)
        press()

    stop: Callable[..., None] = LocalStack._stop
    said: list[str] = []

    def stopped(self: LocalStack, *state: Any) -> None:
        if self.folder.path.exists():
            said.append(told[1].getvalue())
            press()
        stop(self, *state)

    monkeypatch.setattr(LocalStack, "_start", interrupted)
    monkeypatch.setattr(LocalStack, "_stop", stopped)
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        own.up("demo", steps=told[0], root=tmp_path)
    assert said == [f"{STOPPING}\n"]
    assert not (tmp_path / "demo" / "state.json").exists()
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.usefixtures("python_handlers")
def test_ctrl_c_while_a_stack_stops_waits_until_all_of_it_is_gone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also of one that no command has of its own: ``fairlane local down``."""
    stack = LocalStack("kept", root=tmp_path)
    with stack.folder.exclusive():
        stack._save(wanted=1)
    stop: Callable[..., None] = LocalStack._stop
    folder: list[bool] = []

    def stopped(self: LocalStack, *state: Any) -> None:
        press()
        folder.append(self.folder.path.exists())
        stop(self, *state)

    monkeypatch.setattr(LocalStack, "_stop", stopped)
    with pytest.raises(KeyboardInterrupt):
        stack.down()
    assert folder == [True]
    assert not stack.folder.path.exists()


@pytest.mark.usefixtures("downs", "python_handlers")
def test_a_signal_that_is_ignored_stays_so(tmp_path: Path) -> None:
    """As in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with own.taken_down(LocalStack("demo", root=tmp_path), steps=QUIET):
        press()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN

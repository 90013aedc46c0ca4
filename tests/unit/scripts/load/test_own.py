"""A command's own stack takes a name nobody uses, and goes when the command ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.load import own
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

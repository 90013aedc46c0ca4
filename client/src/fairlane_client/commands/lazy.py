"""Commands that are imported when they are called: a list of all of them costs nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from .errors import CommandError
from .signals import ended_at_once

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "fairlane.commands"
"""Entry points of other distributions: each names a sequence of ``Command``."""
STYLE: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # plain text: the same in a terminal, a pipe and a narrow window
}
OF_PYDANTIC: Final = "Value error, "
"""Before typer's own words about a choice, which it lets pydantic check."""


@dataclass(frozen=True)
class Command:
    """A command or a group of commands."""

    name: str
    target: str
    """``package.module:name`` of a function or a ``typer.Typer``."""
    help: str
    """The first line of its own help; a test compares them."""
    needs: str | None = None
    """What to install when a part of it is missing."""

    def load(self) -> TyperCommand | TyperGroup:
        """Raises CommandError."""
        module, _, name = self.target.partition(":")
        try:
            with ended_at_once():
                found = getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            if self.needs is None:
                raise
            why = f"`fairlane {self.name}` needs {self.needs} ({error.name} is not installed)"
            raise CommandError(why) from error
        parent = typer.Typer(**STYLE)
        if isinstance(found, typer.Typer):
            parent.add_typer(found, name=self.name)
        else:
            parent.command(self.name)(found)
        made: TyperCommand | TyperGroup = typer.main.get_group(parent).commands[self.name]  # type: ignore[assignment]  # typer makes only these
        return made


class _Unloaded(TyperCommand):
    """Stands in a list; becomes the command when it is called or completed."""

    def __init__(self, command: Command) -> None:
        super().__init__(name=command.name, help=command.help, rich_markup_mode=None)
        self._command = command

    @cached_property
    def loaded(self) -> TyperCommand | TyperGroup:
        return self._command.load()

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002  a list wraps it
        return self.help or ""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        return self.loaded.make_context(*args, **extra)


class Commands(TyperGroup):
    """A group of the commands in ``own``, and of those that other distributions add."""

    own: Sequence[Command] = ()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  the group's own signature
        return sorted({*self._own, *added()})

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:  # noqa: ARG002
        """Other distributions are not looked at for the client's own commands."""
        found = self._own.get(cmd_name) or added().get(cmd_name)
        return None if found is None else _Unloaded(found)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(OF_PYDANTIC)
            raise

    @property
    def _own(self) -> Mapping[str, Command]:
        return {command.name: command for command in self.own}


def points() -> Sequence[EntryPoint]:
    """The entry points of other distributions; one that is installed twice is one."""
    from importlib.metadata import entry_points

    return list({point.value: point for point in entry_points(group=GROUP)}.values())


@cache
def added() -> Mapping[str, Command]:
    return {command.name: command for point in points() for command in point.load()}

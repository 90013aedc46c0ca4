"""docs/reference/commands.md: every command with its arguments, options and exit statuses."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

import typer
from typer.main import get_command

from fairlane_client.commands.app import app
from fairlane_client.commands.exits import Exit

from .docstrings import markdown, table, under

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ABOUT: Final = """\
# Command line

`fairlane COMMAND --help` prints the same. `fairlane jobs` and `fairlane lanes` call the API and
come with the client alone; the others come with the backend, and those that need a checkout say
so when it is missing. [The client](../client.md) has examples.

## Exit statuses

Of `fairlane jobs` and `fairlane lanes`:

"""
OWN: Final = {
    "FAILED": "The job FAILED.",
    "CANCELLED": "The job was CANCELLED.",
}
HEADS: Final = ("option", "value", "default", "what it does")


def page() -> str:
    texts = {**OWN, **under(Exit)}
    statuses = table(("status", "meaning"), [(each.value, texts[each.name]) for each in Exit])
    return ABOUT + statuses + "".join(f"\n{section}" for section in _sections())


def _sections() -> Iterator[str]:
    for name, command in _leaves(get_command(app), ("fairlane",)):
        yield _section(name, command)


def _leaves(command: Any, name: Sequence[str]) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(name), command
        return
    context = typer.Context(command)
    for word in command.list_commands(context):
        found = command.get_command(context, word)
        yield from _leaves(getattr(found, "loaded", found), (*name, word))


def _section(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    usage = " ".join([name, *(_placeholder(each) for each in arguments)])
    lines = [f"## {name}", "", f"```\n{usage}\n```", "", *_help(command.help or "")]
    lines += [f"- `{_placeholder(each)}`: {_text(each)}" for each in arguments]
    if arguments:
        lines.append("")
    rows = [_option(each) for each in options if not each.hidden]
    return "\n".join(lines) + (f"\n{table(HEADS, rows)}" if rows else "")


def _placeholder(argument: Any) -> str:
    word = argument.name.upper()
    word = f"{word}..." if argument.nargs == -1 else word
    return word if argument.required else f"[{word}]"


def _help(text: str) -> list[str]:
    lines = []
    for paragraph in text.replace("\b", "").split("\n\n"):
        lines += [markdown(paragraph), ""]
    return lines[:-1] if lines[-1:] == ["\n"] else lines


def _option(option: Any) -> tuple[str, ...]:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    if option.envvar:
        names += f" (`{option.envvar}`)"
    return names, _value(option), _default(option), _text(option)


def _value(option: Any) -> str:
    if option.is_flag or option.count:
        return "flag"
    kind = option.type_descriptor.annotation
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    if option.metavar:
        word = f"`{option.metavar}`"
    elif isinstance(kind, type) and issubclass(kind, Enum):
        word = ", ".join(f"`{each.value}`" for each in kind)
    else:
        word = _KINDS[kind]
    if option.min is not None:
        word += f", {option.min:,}"
        word += " or more" if option.max is None else f" to {option.max:,}"
    return f"{word}, repeatable" if option.multiple else word


_KINDS: Final[dict[object, str]] = {
    str: "text",
    int: "integer",
    float: "number",
    Path: "file",
    datetime: "time",
}


def _default(option: Any) -> str:
    if option.required:
        return "**required**"
    value = option.default
    if value is None or value is False or callable(value) or value in ([], ()):
        return ""
    return f"`{getattr(value, 'value', value)}`"


def _text(parameter: Any) -> str:
    return markdown(parameter.help or "")

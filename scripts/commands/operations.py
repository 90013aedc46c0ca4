"""``fairlane operations list|check|try``: operations before any job runs them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer
from pydantic import ValidationError
from rich.table import Table
from rich.text import Text

from fairlane.checking import OperationsError, inspected
from fairlane.testing import OperationBroken, Tried, try_operation
from fairlane_client.commands.errors import CommandError
from fairlane_client.commands.output import console
from handlers.jobs.selection.field_errors import field_errors
from handlers.jobs.words.exact_json import exact_json, exact_loads
from handlers.jobs.words.operation import Fail, Operation, Skip
from handlers.operations.registry import all_operations

from .operation_tables import tables_of

app = typer.Typer(
    help="List, check and try operations: those of Fairlane and those in a folder of your own.",
    no_args_is_help=True,
)

FOLDER_HELP: Final = "A folder of operations of your own."
Folder: TypeAlias = Annotated[Path | None, typer.Option("--operations", help=FOLDER_HELP)]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("list")
def list_(*, operations: Folder = None, as_json: AsJson = False) -> None:
    """List the operations that a deployment has, with those of a folder of your own."""
    found = _known(operations)
    if as_json:
        shown = [
            {
                "name": each.name,
                "description": each.description,
                "parameters": each.parameters.model_json_schema(),
            }
            for each in found.values()
        ]
        print(json.dumps({"operations": shown}))
        return
    table = Table("operation", "what it does", box=None)
    for each in found.values():
        table.add_row(each.name, Text(_plain(each.description.split("\n\n")[0])))
    console().print(table)


@app.command()
def check(folder: Annotated[Path, typer.Argument(help=FOLDER_HELP)]) -> None:
    """Check a folder of operations as synthesis does. Exit status 1: it cannot be deployed."""
    for each in _own(folder):
        print(f"{each.name}: {_plain(each.description.splitlines()[0])}")


@app.command("try")
def try_(
    name: Annotated[str, typer.Argument(help="The operation.")],
    *,
    param: Annotated[
        list[str] | None,
        typer.Option("--param", help="name=JSON, as in `fairlane jobs submit`; repeat it."),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="NAME=FILE",
            help="A parameter that is a lookup table: a .jsonl or .csv, also .gz; repeat it.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key", metavar="NAME=COLUMN", help="The column of that table's file with the keys."
        ),
    ] = None,
    records: Annotated[
        Path | None,
        typer.Option("--records", help="A file of records, one JSON object a line."),
    ] = None,
    record: Annotated[
        list[str] | None, typer.Option("--record", help="One record as JSON; repeat it.")
    ] = None,
    operations: Folder = None,
    as_json: AsJson = False,
) -> None:
    """Show what an operation would make of records, before and after. Changes nothing.

    Exit status 1: it fails one of them, or does what no operation may."""
    known = _known(operations)
    if name not in known:
        raise CommandError(f"there is no operation {name!r}; there are {', '.join(known)}")
    given = [*_lines(records), *(("--record", text) for text in record or [])]
    if not given:
        raise typer.BadParameter("name records with --records FILE or --record JSON")
    parameters = dict(_parameter(text) for text in param or [])
    parameters |= tables_of(table or [], key or [], parameters)
    tried = [_tried(known[name], fields, parameters) for fields in _records(given)]
    if as_json:
        print(exact_json({"records": [_shown(each) for each in tried]}))
    else:
        _print(tried)
    raise typer.Exit(1 if any(isinstance(each.outcome, Fail) for each in tried) else 0)


def _plain(docstring: str) -> str:
    """One paragraph as a terminal shows it: on one line, without the markup of docstrings."""
    return docstring.replace("\n", " ").replace("``", "`")


def _known(folder: Path | None) -> dict[str, Operation]:
    if folder is not None:
        _own(folder)
    return dict(sorted(all_operations().items()))


def _own(folder: Path) -> list[Operation]:
    try:
        return inspected(folder)
    except OperationsError as error:
        raise CommandError(str(error)) from error


def _lines(file: Path | None) -> Iterator[tuple[str, str]]:
    if file is None:
        return
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise CommandError(f"--records: {file} cannot be read: {error}") from error
    yield from ((f"{file}:{at}", line) for at, line in enumerate(lines, 1) if line.strip())


def _records(given: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    for where, text in given:
        try:
            fields = exact_loads(text)
        except ValueError as error:
            raise CommandError(f"{where}: not JSON: {error}") from error
        if not isinstance(fields, dict):
            raise CommandError(f"{where}: not a JSON object")
        yield fields


def _parameter(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        if name and equals:
            return name, exact_loads(value)
    except ValueError as error:
        raise typer.BadParameter(f"--param {text!r}: not JSON: {error}") from error
    raise typer.BadParameter(f"--param {text!r} is not name=JSON")


def _tried(operation: Operation, fields: dict[str, Any], parameters: dict[str, Any]) -> Tried:
    try:
        return try_operation(operation, fields, parameters)
    except ValidationError as error:
        said = "; ".join(each.sentence for each in field_errors(error))
        raise CommandError(f"the parameters are refused: {said}") from error
    except OperationBroken as error:
        raise CommandError(str(error)) from error


def _shown(tried: Tried) -> dict[str, Any]:
    shown: dict[str, Any] = {"outcome": type(tried.outcome).__name__.lower()}
    if isinstance(tried.outcome, Skip | Fail):
        shown["reason"] = tried.outcome.reason
    return {**shown, "before": tried.before, "after": tried.after}


def _print(tried: list[Tried]) -> None:
    table = Table("outcome", "field", "before", "after", box=None)
    for each in tried:
        shown, after = _shown(each), each.after or {}
        changed = [
            name
            for name in sorted({*each.before, *after})
            if each.before.get(name) != after.get(name)
        ]
        table.add_row(f"{shown['outcome']} {shown.get('reason', '')}".strip(), "", "", "")
        for name in changed:
            table.add_row("", name, _text(each.before, name), _text(after, name))
    console().print(table)


def _text(fields: Any, name: str) -> str:
    return exact_json(fields[name]) if name in fields else ""

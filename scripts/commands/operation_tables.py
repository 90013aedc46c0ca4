"""Lookup tables out of files, as a job has them, for ``fairlane operations try``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from fairlane_client.commands.errors import CommandError
from handlers.jobs.selection.table_parser import parse_rows
from handlers.jobs.selection.upload_parser import BadUpload
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.table import Table
from handlers.jobs.words.upload import Format, UploadForm


def tables_of(files: Sequence[str], columns: Sequence[str]) -> dict[str, Table]:
    """The table of each parameter. files, columns: ``name=value``. Raises typer.BadParameter,
    CommandError."""
    keys = _named("--key", columns)
    given = _named("--table", files)
    if odd := sorted(set(given) ^ set(keys)):
        raise typer.BadParameter(
            f"{odd[0]!r} has only one of --table and --key: name a file and the column of its keys"
        )
    return {name: _table(Path(file), keys[name]) for name, file in given.items()}


def _named(option: str, given: Sequence[str]) -> Mapping[str, str]:
    parts = {text: text.partition("=") for text in given}
    for text, (name, _, value) in parts.items():
        if not name or not value:
            raise typer.BadParameter(f"{option} {text!r} is not name=value")
    return {name: value for name, _, value in parts.values()}


def _table(file: Path, column: str) -> Table:
    suffixes = [suffix.removeprefix(".") for suffix in file.suffixes]
    gzip = suffixes[-1:] == ["gz"]
    kind = (suffixes[:-1] if gzip else suffixes)[-1:]
    if kind not in ([Format.CSV.value], [Format.JSONL.value]):
        raise typer.BadParameter(f"--table: {file} is neither .jsonl nor .csv")
    form = UploadForm(format=Format(kind[0]), column=column, gzip=gzip)
    try:
        content = file.read_bytes()
        return Table(dict(parse_rows([content], form, max_bytes=Limits().max_table_bytes)))
    except OSError as error:
        raise CommandError(f"--table: {file} cannot be read: {error.strerror}") from error
    except BadUpload as error:
        raise CommandError(f"--table: {file}: {error}") from error

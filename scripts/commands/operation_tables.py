"""Lookup tables out of files, as a job has them, for ``fairlane operations try``."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from fairlane_client import NewUpload
from fairlane_client.commands.errors import CommandError
from fairlane_client.commands.lookup import forms
from handlers.jobs.selection.table_parser import parse_rows
from handlers.jobs.selection.table_uploads import as_kept
from handlers.jobs.selection.upload_parser import BadUpload
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.table import Table
from handlers.jobs.words.upload import UploadForm

MOST: Final = Limits().max_table_bytes
"""Bytes of a table by default; the deployment's own limit is not known here."""


def tables_of(
    files: Sequence[str], columns: Sequence[str], params: Collection[str]
) -> dict[str, Table]:
    """The table of each parameter. files, columns: ``name=value``. params: the other parameters.
    Raises typer.BadParameter, CommandError."""
    named = forms(files, columns, params)
    return {name: _table(path, form) for name, (path, form) in named.items()}


def _table(path: Path, form: NewUpload) -> Table:
    how = UploadForm.model_validate(form.model_dump())
    try:
        content = path.read_bytes()
        rows = dict(parse_rows([content], how, max_bytes=MOST))
        as_kept(rows.items(), MOST)  # a job's creation refuses what is larger as JSON
    except OSError as error:
        raise CommandError(f"--table: {path} cannot be read: {error.strerror}") from error
    except (BadUpload, ValueError) as error:
        raise CommandError(f"--table: {path}: {error}") from error
    return Table(rows)

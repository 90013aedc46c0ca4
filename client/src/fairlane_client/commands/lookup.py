"""``--table`` and ``--key``: lookup tables among a job's parameters, uploaded from files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from ..client import Client
from ..idfiles import FORMATS
from ..problems import FileTooLarge
from ..requests import NewJob, NewUpload
from .output import say
from .pairs import pair


def forms(files: Sequence[str], keys: Sequence[str]) -> Mapping[str, tuple[Path, NewUpload]]:
    """Each table's file, and how to read it, by its parameter. Raises BadParameter."""
    columns = dict(pair("--key", text) for text in keys)
    paths = dict(pair("--table", text) for text in files)
    if odd := sorted(paths.keys() ^ columns.keys()):
        raise typer.BadParameter(
            f"{odd[0]!r} has only one of --table and --key: name a file and the column of its keys"
        )
    return {name: (Path(path), _form(path, columns[name])) for name, path in paths.items()}


def _form(path: str, column: str) -> NewUpload:
    kind = FORMATS.get(Path(path.removesuffix(".gz")).suffix.lower())
    if kind is None:
        raise typer.BadParameter(f"--table {path}: a table is one of {', '.join(FORMATS)}")
    if not Path(path).is_file():
        raise typer.BadParameter(f"--table {path}: no such file")
    return NewUpload(format=kind.value, column=column, gzip=path.endswith(".gz"))


def with_tables(
    client: Client, job: NewJob, tables: Mapping[str, tuple[Path, NewUpload]]
) -> NewJob:
    """The request, which names the uploaded files. Raises BadParameter, ClientError."""
    params = dict(job.params)
    for name, (path, form) in tables.items():
        try:
            upload_id = client.upload(path, form)
        except (FileTooLarge, OSError) as error:
            raise typer.BadParameter(f"--table {path}: {error}") from error
        params[name] = {"upload_id": upload_id}
        again = f'--param \'{name}={{"upload_id": "{upload_id}"}}\''
        say(f"uploaded {path}: use {again} to send it again")
    return job.model_copy(update={"params": params})

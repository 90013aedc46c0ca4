"""``--table`` and ``--key``: lookup tables among a job's parameters, uploaded from files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import typer

from ..client import Client
from ..idfiles import FORMATS
from ..problems import FileTooLarge
from ..requests import NewJob, NewUpload
from .files import check_source
from .output import say
from .pairs import pair


def forms(
    files: Sequence[str], keys: Sequence[str], params: Collection[str]
) -> Mapping[str, tuple[Path, NewUpload]]:
    """Each table's file, and how to read it, by its parameter. params: the other parameters. Raises
    BadParameter."""
    columns = _named("--key", keys)
    paths = _named("--table", files)
    if odd := sorted(paths.keys() ^ columns.keys()):
        raise typer.BadParameter(
            f"{odd[0]!r} has only one of --table and --key: name a file and the column of its keys"
        )
    if both := sorted(paths.keys() & set(params)):
        raise typer.BadParameter(f"{both[0]!r} is a --table, and has another value too")
    return {name: (Path(path), _form(path, columns[name])) for name, path in paths.items()}


def _named(option: str, texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, value = pair(option, text)
        if not value:
            raise typer.BadParameter(f"{option} {text!r} is not NAME=VALUE")
        if name in found:
            raise typer.BadParameter(f"{option} {name}= is given twice; a table has one of each")
        found[name] = value
    return found


def _form(path: str, column: str) -> NewUpload:
    kind = FORMATS.get(Path(path.removesuffix(".gz")).suffix.lower())
    if kind is None:
        raise typer.BadParameter(f"--table {path}: a table is one of {', '.join(FORMATS)}")
    check_source("--table", Path(path))
    if not Path(path).is_file():
        raise typer.BadParameter(
            f"--table {path} is a pipe or a device: a table is read from a file"
        )
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

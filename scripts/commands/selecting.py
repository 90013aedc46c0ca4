"""What ``--ids-file`` names: a few ids to send along, or a file to upload."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from handlers.jobs.uploads import BadUpload, Format, UploadForm, ids_of
from scripts.client import Client
from scripts.client.uploads import NewUpload, TooLarge

SEND_ALONG: Final = 256 * 1024
"""Bytes of a file up to which its ids are sent in the request itself."""
BLOCK: Final = 64 * 1024
ROOM: Final = 64 * 1024**2
"""Bytes a small file may have once it is decompressed."""
FORMATS: Final = {".csv": Format.CSV, ".jsonl": Format.JSONL, ".ndjson": Format.JSONL}


@dataclass(frozen=True)
class Selected:
    """Either of the two; neither when nothing was named."""

    ids: list[str] | None = None
    upload_id: str | None = None


def selected(client: Client, path: str | None, column: str | None, ids: list[str]) -> Selected:
    """Read a small file, upload a large one. Raises BadParameter, ClientError."""
    if path is None:
        return Selected(ids=ids or None)
    form = form_of(path, column)
    with _readable(path) as file:
        if file.stat().st_size <= SEND_ALONG:
            return Selected(ids=[*ids, *_read(file, form, path)])
        if ids:
            raise typer.BadParameter("a large --ids-file and --id do not go together")
        return Selected(upload_id=_sent(client, file, form))


def form_of(path: str, column: str | None) -> UploadForm | None:
    """How to read a file of that name; None: one plain id a line. Raises BadParameter."""
    stem, gzip = path.removesuffix(".gz"), path.endswith(".gz")
    kind = FORMATS.get(Path(stem).suffix.lower())
    if kind is Format.CSV and column is None:
        raise typer.BadParameter(f"--ids-file {path}: a CSV file needs --column")
    if kind is not None:
        return UploadForm(format=kind, column=column, gzip=gzip)
    if column is not None or gzip:
        known = ", ".join(FORMATS)
        raise typer.BadParameter(f"--ids-file {path}: only {known} have columns or may be .gz")
    return None


@contextmanager
def _readable(path: str) -> Iterator[Path]:
    if path != "-":
        if not Path(path).is_file():
            raise typer.BadParameter(f"--ids-file {path}: no such file")
        yield Path(path)
        return
    with tempfile.NamedTemporaryFile() as file:
        for block in iter(lambda: sys.stdin.buffer.read(BLOCK), b""):
            file.write(block)
        file.flush()
        yield Path(file.name)


def _read(path: Path, form: UploadForm | None, named: str) -> list[str]:
    try:
        if form is None:
            return list(_plain(path))
        with path.open("rb") as file:
            return list(ids_of(iter(lambda: file.read(BLOCK), b""), form, max_bytes=ROOM))
    except (OSError, UnicodeDecodeError, BadUpload) as error:
        raise typer.BadParameter(f"--ids-file {named}: {error}") from error


def _plain(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", newline="\n") as lines:
        for line in lines:
            if text := line.rstrip("\r\n"):
                yield text


def _sent(client: Client, path: Path, form: UploadForm | None) -> str:
    if form is not None:
        return _send(client, path, form)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.writelines(_json_lines(_plain(path)))
        file.flush()
        return _send(client, Path(file.name), UploadForm(format=Format.JSONL))


def _json_lines(ids: Iterable[str]) -> Iterator[bytes]:
    return (json.dumps(id_, ensure_ascii=False).encode() + b"\n" for id_ in ids)


def _send(client: Client, path: Path, form: UploadForm) -> str:
    columns = (TextColumn("sending"), BarColumn(bar_width=30), DownloadColumn())
    bar = Progress(*columns, TransferSpeedColumn(), console=Console(stderr=True))
    upload = NewUpload(format=form.format.value, column=form.column, gzip=form.gzip)
    with bar:
        task = bar.add_task("", total=path.stat().st_size)
        try:
            return client.upload(path, upload, sent=lambda size: bar.advance(task, size))
        except (TooLarge, OSError) as error:
            raise typer.BadParameter(str(error)) from error

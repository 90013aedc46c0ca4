"""What ``--id`` and ``--ids-file`` name: sent in the request where that has room, else as a file.

``requests`` says how much room a request has. A deployment can have less; then the API answers
413, and the ids are uploaded.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import IO, Final, TypeVar

import typer

from ..client import Client
from ..idfiles import FORMATS, BadFile, bad_id, ids_of
from ..problems import ApiProblem, FileTooLarge
from ..requests import BODY, INLINE_IDS, NewJob, NewUpload
from ..words import UploadFormat
from .files import check_source
from .output import say

Answer = TypeVar("Answer")

BLOCK: Final = 64 * 1024
TOO_LARGE: Final = 413
OF_IDS: Final = (None, "body", "ids")
"""Fields of a 413 that fewer ids would have prevented; None: it is not the API that answered."""


@dataclass(frozen=True)
class Selected:
    """Records named one by one. Reading them raises BadParameter, with the line."""

    ids: Sequence[str]
    """Before those of the file."""
    path: Path | None = None
    form: NewUpload | None = None
    """Of the file; None: one plain id a line."""
    named: str = "--id"
    """The option, for messages."""

    def __iter__(self) -> Iterator[str]:
        of_file = () if self.path is None else _read(self.path, self.form, self.named)
        return chain(_typed(self.ids), of_file)

    def in_request(self, job: NewJob) -> NewJob | None:
        """The request with all ids in it; None when it has no room for them. Raises BadParameter,
        also when there is none."""
        ids: list[str] = []
        size = 0
        for id_ in self:
            ids.append(id_)
            size += len(id_.encode())
            if len(ids) > INLINE_IDS or size > BODY:
                return None
        if not ids:
            raise typer.BadParameter(f"{self.named} holds no ids")
        whole = _with(job, ids)
        return whole if len(whole.json_body()) <= BODY else None


@contextmanager
def selected(path: str | None, column: str | None, ids: list[str]) -> Iterator[Selected | None]:
    """None when nothing is named. Raises BadParameter."""
    if path is None:
        if column is not None:
            raise typer.BadParameter("--column needs --ids-file, whose column it names")
        yield Selected(ids) if ids else None
        return
    form = form_of(path, column)
    with _readable(path) as file:
        yield Selected(ids, file, form, f"--ids-file {path}")


def submitted(
    client: Client, job: NewJob, records: Selected | None, send: Callable[[NewJob], Answer]
) -> Answer:
    """Send the request with its records. Raises BadParameter, ClientError."""
    if records is None:
        return send(job)
    why = f"it has room for {INLINE_IDS} ids in {BODY} bytes"
    if (whole := records.in_request(job)) is not None:
        try:
            return send(whole)
        except ApiProblem as problem:
            if problem.status != TOO_LARGE or problem.field not in OF_IDS:
                raise
            why = problem.detail
    # A request that is wrong in another way is refused before a file is sent for it.
    client.preview(_with(job, list(islice(records, 1))))
    say(f"{records.named}: too many ids for a request ({why}); uploading them")
    upload_id = _upload(client, records)
    say(f"uploaded: use --upload-id {upload_id} to send the same ids again")
    return send(job.model_copy(update={"upload_id": upload_id}))


def _with(job: NewJob, ids: list[str]) -> NewJob:
    return job.model_copy(update={"ids": ids})


def form_of(path: str, column: str | None) -> NewUpload | None:
    """How to read a file of that name; None: one plain id a line. Raises BadParameter."""
    stem, gzip = path.removesuffix(".gz"), path.endswith(".gz")
    kind = FORMATS.get(Path(stem).suffix.lower())
    if kind is UploadFormat.CSV and column is None:
        raise typer.BadParameter(f"--ids-file {path}: a CSV file needs --column")
    if kind is not None:
        return NewUpload(format=kind.value, column=column, gzip=gzip)
    if column is not None or gzip:
        known = ", ".join(FORMATS)
        raise typer.BadParameter(f"--ids-file {path}: only {known} have columns or may be .gz")
    return None


@contextmanager
def _readable(path: str) -> Iterator[Path]:
    """A file that can be read several times: a copy of what a pipe or a device gives once."""
    if path != "-":
        check_source("--ids-file", Path(path))
        if Path(path).is_file():
            yield Path(path)
            return
    with tempfile.NamedTemporaryFile() as file:
        try:
            with _pipe(path) as given:
                shutil.copyfileobj(given, file, BLOCK)
        except OSError as error:
            raise typer.BadParameter(f"--ids-file {path}: {error}") from error
        file.flush()
        yield Path(file.name)


def _pipe(path: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if path == "-" else Path(path).open("rb")


def _typed(ids: Iterable[str]) -> Iterator[str]:
    for id_ in ids:
        if problem := bad_id(id_):
            raise typer.BadParameter(f"--id {id_!r} {problem}")
        yield id_


def _read(path: Path, form: NewUpload | None, named: str) -> Iterator[str]:
    try:
        yield from ids_of(path, form)
    except (OSError, BadFile) as error:
        raise typer.BadParameter(f"{named}: {error}") from error


# --- as a file --------------------------------------------------------------------------------


def _upload(client: Client, records: Selected) -> str:
    """As it is, where that holds all ids and has a format. Raises BadParameter, ClientError."""
    if records.path is not None and records.form is not None and not records.ids:
        return _send(client, records.path, records.form, records.named)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        file.writelines(_json_lines(records))
        file.flush()
        return _send(
            client, Path(file.name), NewUpload(format=UploadFormat.JSONL.value), records.named
        )


def _json_lines(ids: Iterable[str]) -> Iterator[bytes]:
    return (json.dumps(id_, ensure_ascii=False).encode() + b"\n" for id_ in ids)


def _send(client: Client, path: Path, form: NewUpload, named: str) -> str:
    from .bar import bytes_bar

    with bytes_bar("sending", path.stat().st_size) as sent:
        try:
            return client.upload(path, form, sent=sent)
        except (FileTooLarge, OSError) as error:
            raise typer.BadParameter(f"{named}: {error}") from error

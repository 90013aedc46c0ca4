"""One job over a large uploaded file, in a process of its own, to see how much memory it takes.

``python -m tests.support.large_job COUNT [set]`` prints the peak as JSON. The file is made up as
it is read, the id list goes through the real S3 adapter to a temporary file, and no record is
kept: what grows is the worker. ``set`` drops repeats in memory instead, for comparison.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, Final
from unittest.mock import patch
from urllib.parse import parse_qs, urlsplit

import boto3
from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config

from handlers.aws.payload_store import S3PayloadStore
from handlers.jobs.execution import id_list
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import accept
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.operation import Operation, Record, Touch
from handlers.jobs.words.ports import Stored, UploadAddress
from handlers.jobs.words.writes import Check, Key, Table, Write
from handlers.operations.parameters import Parameters
from handlers.testing.world import MemoryWorld, memory_world

WIDTH: Final = 43
"""Bytes of one line: 40 characters of id, quotes and the newline."""
REPEATED: Final = 10
"""Every tenth id comes a second time, far from the first."""


def line(number: int, count: int) -> bytes:
    if number >= count:
        number = (number - count) * REPEATED
    return f'"{(number * 2_654_435_761) % 2**32:010}-{number:029}"\n'.encode()


class Endless:
    """``UploadStore`` with one file that nobody holds."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._lines = count + count // REPEATED

    def address(self, name: str, notes: Mapping[str, str], *, seconds: int) -> UploadAddress:
        return UploadAddress("", {})

    def look(self, name: str) -> Stored:
        return Stored("1", self._lines * WIDTH, {"format": "jsonl", "gzip": "no"})

    def read(self, name: str, version: str, offset: int, length: int) -> bytes:
        first, last = offset // WIDTH, min(self._lines, -(-(offset + length) // WIDTH))
        block = b"".join(line(number, self._count) for number in range(first, last))
        return block[offset - first * WIDTH :][:length]


class Anything:
    """``RecordStore`` in which every record exists and none is kept."""

    def read(self, tenant: str, ids: Sequence[str]) -> Mapping[str, Record]:
        return {id_: Record(tenant, id_, 1, {"n": 1}) for id_ in ids}

    def change(self, record: Record, fields: object, job_id: str) -> Write:
        return Check(Key(record.tenant, record.id, Table.RECORDS), ())

    def remove(self, record: Record, job_id: str) -> Write:
        return self.change(record, None, job_id)


class Disk:
    """As much of S3 as the payload store needs, on a file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def answer(self, request: Any, **_: object) -> AWSResponse:
        url = urlsplit(request.url)
        query = parse_qs(url.query, keep_blank_values=True)
        match request.method:
            case "POST" if "uploads" in query:
                return _xml("<InitiateMultipartUploadResult><UploadId>u</UploadId>")
            case "PUT":
                body = request.body
                self._file.write(body if isinstance(body, bytes) else body.read())
                return _response(200, b"", {"ETag": '"1"'})
            case "POST":
                return _xml("<CompleteMultipartUploadResult><ETag>1</ETag>")
            case "GET":
                return self._get(request.headers["Range"].decode())
            case _:
                return _response(204, b"")

    def _get(self, asked: str) -> AWSResponse:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked)
        assert found
        start, end = map(int, found.groups())
        self._file.flush()
        self._file.seek(start)
        return _response(206, self._file.read(end - start + 1))


def _xml(opened: str) -> AWSResponse:
    return _response(200, f"{opened}</{opened[1:].partition('>')[0]}>".encode())


def _response(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> AWSResponse:
    class Raw:
        def stream(self, **_: object) -> Iterator[bytes]:
            yield body

        def read(self, *_: object, **__: object) -> bytes:
            return body

    return AWSResponse("http://disk", status, HTTPHeaders.from_dict(dict(headers or {})), Raw())


class InMemory:
    """What ``PermutedIds`` is not."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = ids
        self.total = self.duplicates = 0

    def __iter__(self) -> Iterator[str]:
        seen: set[str] = set()
        for id_ in self._ids:
            if id_ in seen:
                self.duplicates += 1
                continue
            seen.add(id_)
            self.total += 1
            yield id_


def run(count: int, file: IO[bytes]) -> Job:
    world = large_world(count, file)
    request = accept(
        {"operation": "touch", "subject": "s", "upload_id": "0" * 32}, world.operations, max_ids=1
    )
    outcome = submit(world, "acme", request)
    assert isinstance(outcome, Created)
    [delivery] = world.queues[Lane.BULK].receive(1, 0)
    apply_decision(world.queues[Lane.BULK], delivery, on_message(world, delivery, Worker("w")))
    job = read_job(world, outcome.job.id)
    assert job is not None
    return job


def large_world(count: int, file: IO[bytes]) -> MemoryWorld:
    client = boto3.client(
        "s3",
        region_name="eu-west-1",
        aws_access_key_id="-",
        aws_secret_access_key="-",
        config=Config(request_checksum_calculation="when_required"),
    )
    events: Any = client.meta.events  # their answers count, whatever the stub says
    events.register("before-send.s3", Disk(file).answer)
    touch = Operation("touch", Parameters, lambda *_: Touch(), lambda _: frozenset())
    # None of these is the in-memory one that such a world has.
    parts: dict[str, Any] = {
        "uploads": Endless(count),
        "records": Anything(),
        "payloads": S3PayloadStore(client, "bucket"),
    }
    return replace(memory_world(operations={"touch": touch}), **parts)


def peak_kib() -> int:
    """Of this program alone: what getrusage says begins with the peak of whoever started it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1])


def main(count: int, *how: str) -> None:
    with tempfile.TemporaryFile() as file:
        if how == ("set",):
            with patch.object(id_list, "distinct", lambda ids, _seed, *, permute: InMemory(ids)):
                job = run(count, file)
        else:
            job = run(count, file)
    peak = peak_kib()
    print(  # noqa: T201  the answer
        json.dumps(
            {
                "peak_kib": peak,
                "state": job.state,
                "total": job.total,
                "succeeded": job.succeeded,
                "duplicates": job.duplicates,
                "message": job.message,
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])

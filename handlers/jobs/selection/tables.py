"""The rows of lookup tables, as jobs keep them and workers read them.

A table is kept as JSON Lines under the hash of that content, which the job names. So every attempt
reads the same rows, and a process reads them once. No job deletes a table, because another may have
the same one: the bucket's rule for orphans does, as with id lists.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from ..storage.transaction import retry_transient
from ..words.errors import JobFailed, PayloadGone
from ..words.exact_json import exact_loads
from ..words.job import EndReason
from ..words.limits import PAYLOAD_BLOCK
from ..words.table import Table

if TYPE_CHECKING:
    from ..words.job import Job
    from ..words.ports import World

CACHED: Final = 2
"""A process keeps as many bytes as so many tables of the largest size have."""


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keep_table(world: World, tenant: str, content: bytes) -> None:
    """content: a line of JSON for each row, ``[key, row]``. Raises Transient."""
    name = _name(tenant, digest_of(content))
    retry_transient(world, lambda: world.payloads.put(name, [content]))


def _name(tenant: str, digest: str) -> str:
    """Under the tenant's own prefix: nobody learns what another tenant has uploaded."""
    owner = hashlib.sha256(b"fairlane-tables:" + tenant.encode()).hexdigest()[:32]
    return f"tables/{owner}/{digest}"


def read_table(world: World, job: Job, upload_id: str) -> Table:
    """A table of the job, out of this process's memory if it is there. Raises JobFailed,
    Transient."""
    digest = job.tables.get(upload_id)
    if digest is None:
        raise JobFailed(EndReason.BAD_PARAMETERS, f"the job has no table of upload {upload_id}")
    name = _name(job.tenant, digest)
    if (held := world.tables.get(name)) is not None:
        return held
    content = _content(world, name, digest)
    table = Table(dict(exact_loads(line) for line in content.splitlines()))
    most = CACHED * world.limits.max_table_bytes
    world.tables.put(name, table, len(content), most=most)
    return table


def renew_tables(world: World, job: Job) -> None:
    """Store the job's tables anew, so that they are kept as long for another job as its id list is.
    Raises JobFailed, Transient."""
    for digest in set(job.tables.values()):
        keep_table(world, job.tenant, _content(world, _name(job.tenant, digest), digest))


def _content(world: World, name: str, digest: str) -> bytes:
    content = b"".join(_blocks(world, name))
    if digest_of(content) != digest:
        raise JobFailed(EndReason.PAYLOAD_GONE, "a stored table of the job has changed")
    return content


def _blocks(world: World, name: str) -> Iterator[bytes]:
    offset = 0
    while True:
        read = partial(world.payloads.read, name, offset, PAYLOAD_BLOCK)
        try:
            block = retry_transient(world, read)
        except PayloadGone as error:
            raise JobFailed(EndReason.PAYLOAD_GONE, "a stored table of the job is gone") from error
        if not block:
            return
        yield block
        if len(block) < PAYLOAD_BLOCK:
            return
        offset += len(block)

"""Bringing a report here from the address that the API gave for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Final
from uuid import uuid4

import urllib3

from .models import ReportView
from .problems import NotDownloaded

TIMEOUT_S: Final = 60.0
"""Without a byte."""
TRIES_AGAIN: Final = 3
OK: Final = 200
BLOCK: Final = 256 * 1024


def fetch(report: ReportView, path: Path, *, got: Callable[[int], None]) -> None:
    """Put the report's file at ``path``, in the place of an older one. got: told of the bytes of
    each piece.

    Whole and as the API described it, or not at all. Raises NotDownloaded, OSError.
    """
    path = path.resolve()  # a link stays one
    part = path.with_name(f".{uuid4().hex}.part")
    try:
        with urllib3.PoolManager(timeout=TIMEOUT_S, retries=TRIES_AGAIN) as pool:
            _into(part, pool, report, got)
        part.replace(path)
    except urllib3.exceptions.HTTPError as error:
        raise _problem(report, str(error)) from error
    finally:
        part.unlink(missing_ok=True)


def _into(
    part: Path, pool: urllib3.PoolManager, report: ReportView, got: Callable[[int], None]
) -> None:
    # Signed by its address: the token is nobody's business there.
    reply = pool.request("GET", report.url, preload_content=False)
    if reply.status != OK:
        said = reply.read(500).decode(errors="replace")
        raise _problem(report, f"the answer is {reply.status}: {said}")
    digest, size = hashlib.sha256(), 0
    with part.open("xb") as file:
        for piece in reply.stream(BLOCK, decode_content=False):
            file.write(piece)
            digest.update(piece)
            size += len(piece)
            got(len(piece))
    if (size, digest.hexdigest()) != (report.bytes, report.sha256):
        raise _problem(
            report, f"the download has {size} of {report.bytes} bytes, or another SHA-256"
        )


def _problem(report: ReportView, why: str) -> NotDownloaded:
    return NotDownloaded(
        f"{why}. Until {report.expires_at.isoformat()} the report is at {report.url}"
    )

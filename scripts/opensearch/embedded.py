"""The embedded search engine: osmem-server, in memory, up in milliseconds, no Java.

It answers like OpenSearch, but shows every write at once: nothing that depends on an index
lagging behind its writes can be seen on it. That takes a real node (``node.py``).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from opensearchpy import OpenSearch
from osmem_server import resolve_binary  # type: ignore[import-untyped]  # ships no types

from scripts.local import processes
from scripts.local.ministack import HOST
from scripts.local.processes import Process

from .client import client_of
from .errors import SearchEngineError

START_TIMEOUT_S: Final = 300
STOP_GRACE_S: Final = 5


class EmbeddedSearch:
    """``with EmbeddedSearch(folder) as search: ...`` starts an empty engine on a free port and
    stops it; it ends with this process, whatever ends that. ``up`` without a parent outlives the
    command; then keep ``process`` and stop that."""

    def __init__(self, folder: Path, *, started: Callable[[Process], None] | None = None) -> None:
        """folder: for its log. started: told the process before the wait for its address."""
        self._log = folder / "search.log"
        self._started = started or (lambda _: None)
        self.process: Process | None = None
        self.url = ""

    def __enter__(self) -> Self:
        return self.up(parent=os.getpid())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def up(self, *, parent: int = 0, port: int = 0) -> Self:
        """Start it and wait for its address. parent: a process it must not outlive. port: 0 for
        a free one. Raises SearchEngineError."""
        self._log.unlink(missing_ok=True)
        command = [resolve_binary(), "-addr", f"{HOST}:{port}", "-no-stdin-watch"]
        command += ["-parent-pid", str(parent)] if parent else []
        self._log.parent.mkdir(parents=True, exist_ok=True)
        process = processes.start(command, env={}, cwd=self._log.parent, log=self._log)
        self.process = process
        try:
            self._started(process)
            self.url = _wait(process)
        except BaseException:
            self.down()
            raise
        return self

    def down(self) -> None:
        """Stop it; what it held is gone."""
        if self.process:
            processes.stop([self.process], grace=STOP_GRACE_S)
        self.process, self.url = None, ""

    def client(self) -> OpenSearch:
        """A client that never retries by itself; close it, or use it in a ``with``."""
        return client_of(self.url)


def _wait(process: Process) -> str:
    """The address it prints, as one JSON line, once it listens."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline and process.alive():
        # A line that is still being written has no end yet.
        complete = process.log.read_text(errors="replace").rpartition("\n")[0]
        for line in complete.splitlines():
            if line.startswith("{") and (url := json.loads(line).get("url")):
                return str(url)
        time.sleep(0.02)
    raise SearchEngineError(
        "the embedded search engine (osmem-server) did not start. Its last words "
        f"({process.log}):\n{process.tail()}"
    )

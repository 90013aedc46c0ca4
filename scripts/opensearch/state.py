"""What is known of a node between two commands."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from scripts.local.processes import Process
from scripts.local.project import STATE

from .errors import SearchEngineError

ROOT: Final = STATE / "opensearch"
CACHE: Final = ROOT / "cache"
"""What every node of this checkout shares: where its jars are, and the compiled launcher."""
NODE: Final = ROOT / "node"


class NodeState(BaseModel):
    """What ``up`` started: a Java process or a container, or nothing yet."""

    model_config = ConfigDict(frozen=True)

    process: Process | None = None
    container: str = ""
    """Docker's id of it."""
    url: str = ""
    """Known once the node serves."""

    @property
    def how(self) -> str:
        return "java" if self.process else "docker" if self.container else "none"


class NodeFolder:
    """Where a node keeps its state, data and log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "node.log"
        self._file = path / "state.json"

    def read(self) -> NodeState:
        """The state; an empty one when there is none. Raises SearchEngineError for a broken
        file."""
        try:
            return NodeState.model_validate_json(self._file.read_text())
        except FileNotFoundError:
            return NodeState()
        except ValidationError as error:
            raise SearchEngineError(
                f"{self._file} cannot be read. Stop the process or container it names by hand, "
                f"then delete {self.path}:\n{error}"
            ) from error

    def write(self, state: NodeState) -> None:
        """Replace the state at once: a reader sees the old one or the new one."""
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(state.model_dump_json(indent=2))
        fresh.replace(self._file)

    def clear(self) -> None:
        """Remove everything but the log."""
        for entry in self.path.iterdir() if self.path.exists() else ():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry != self.log:
                entry.unlink()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Only one command at a time starts or stops a node. Raises SearchEngineError when
        another one is at it."""
        try:
            with locked(self.path.parent / f"{self.path.name}.lock", wait=False):
                yield
        except BlockingIOError:
            raise SearchEngineError(
                "another command is starting or stopping this OpenSearch node: wait for it"
            ) from None


@contextmanager
def locked(file: Path, *, wait: bool) -> Iterator[None]:
    """Hold the lock of this file, which stays: removing it would let two hold "the" lock.
    Raises BlockingIOError when somebody else has it and ``wait`` is false."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(descriptor)

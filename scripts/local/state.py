"""What is known of a local stack between two commands: one file, and one lock."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from .deploy import Deployed
from .errors import InUse, LocalError
from .processes import Process
from .project import STATE

ROOT: Final = STATE / "local"
CLEAR_TRIES: Final = 20
CLEAR_PAUSE_S: Final = 0.1


class State(BaseModel):
    """Of one stack. Written after every process that is started, so that none can be forgotten."""

    model_config = ConfigDict(frozen=True)

    aws: Process | None = None
    port: int = 0
    database: Process | None = None
    """The local AWS's database, a process of its own."""
    database_port: int = 0
    iam: bool = False
    """Each program may do what its role allows. The database is then in the local AWS's process,
    where the roles are."""
    search: Process | None = None
    """The embedded search engine, where the stack has one."""
    search_url: str = ""
    workers: tuple[Process, ...] = ()
    wanted: int = 0
    """Bulk workers that should run."""
    supervisor: Process | None = None
    """What replaces workers that end, where the stack has one."""
    settings: Mapping[str, Any] = {}
    """What was chosen over the settings of a local stack."""
    code: Path | None = None
    """Where the team's own packages are, for the workers."""
    deployed: Deployed | None = None
    api_url: str = ""
    ready: bool = False
    """``up`` went through to its end."""

    @property
    def processes(self) -> tuple[Process, ...]:
        """Those that were started, running or not."""
        others = (self.aws, self.database, self.search, self.supervisor)
        # One process may be both the local AWS and its database.
        return tuple(dict.fromkeys((*self.workers, *(process for process in others if process))))

    @property
    def up(self) -> bool:
        return self.ready and all(part is not None and part.alive() for part in self.local_aws)

    @property
    def local_aws(self) -> tuple[Process | None, Process | None]:
        """The processes without which nothing of the stack is left."""
        return self.aws, self.database


class StackFolder:
    """Where a stack keeps its state, logs, key and synthesised templates."""

    def __init__(self, name: str, root: Path = ROOT) -> None:
        if not name or not name.replace("-", "").replace("_", "").isalnum():
            raise LocalError(f"{name!r} is no name for a stack: use letters, digits, - and _")
        self.name = name
        self.path = root / name
        self._file = self.path / "state.json"
        self._lock = root / f"{name}.lock"

    def read(self) -> State:
        """The state; an empty one when there is none. Raises LocalError for a broken file."""
        try:
            return State.model_validate_json(self._file.read_text())
        except FileNotFoundError:
            return State()
        except ValidationError as error:
            raise LocalError(
                f"{self._file} cannot be read. Stop the processes it names by hand, then delete "
                f"{self.path}:\n{error}"
            ) from error

    def write(self, state: State) -> None:
        """Replace the state at once: a reader sees the old one or the new one."""
        self.path.mkdir(parents=True, exist_ok=True)
        fresh = self._file.with_suffix(".new")
        fresh.write_text(state.model_dump_json(indent=2))
        fresh.replace(self._file)

    def clear(self, *, keep_logs: bool = False) -> None:
        """Remove everything, or everything but the logs."""
        if keep_logs and self.path.exists():
            for entry in self.path.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry, ignore_errors=True)
                elif entry.suffix != ".log":
                    entry.unlink()
            return
        for _ in range(CLEAR_TRIES):
            shutil.rmtree(self.path, ignore_errors=True)
            if not self.path.exists():
                return
            time.sleep(CLEAR_PAUSE_S)  # a process that ends may just have written something

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Only one command at a time starts or stops a stack. Raises InUse when another one is at
        it. The lock file stays: removing it would let two hold "the" lock."""
        try:
            self._lock.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise LocalError(f"the stack's state cannot be kept: {error}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise InUse(
                f"another command is starting or stopping the stack {self.name!r}: wait for it, "
                "or choose another --name"
            ) from None
        finally:
            os.close(descriptor)


def names(root: Path = ROOT) -> list[str]:
    """The stacks that have a state, running or not."""
    return sorted(file.parent.name for file in root.glob("*/state.json"))

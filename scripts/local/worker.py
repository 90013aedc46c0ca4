"""Bulk workers as processes: what the deployed task definition says, without the container."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import processes
from .errors import LocalError
from .ministack import CREDENTIALS
from .processes import Process
from .project import PACKAGES

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient
    from mypy_boto3_ecs.type_defs import ContainerDefinitionOutputTypeDef, TaskDefinitionTypeDef

STOP_GRACE_S: Final = 10


class Workers:
    """The bulk workers of one stack. They have the credentials that ``credentials_of`` tells of
    their task's role (ECS would renew them), and without it those that may do everything.

    ``code`` is the folder they start in, with what they import and the environment does not have.
    ``known`` are those started so far; ``changed`` is called with the new list before anything can
    go wrong with a worker just started, so that none is ever forgotten.
    """

    def __init__(
        self,
        ecs: ECSClient,
        *,
        credentials_of: Callable[[str], Mapping[str, str]] | None = None,
        task_definition: str,
        addresses: Mapping[str, str],
        folder: Path,
        code: Path = PACKAGES,
        known: Sequence[Process],
        changed: Callable[[Sequence[Process]], None],
    ) -> None:
        self._ecs = ecs
        self._credentials_of = credentials_of
        self._task_definition = task_definition
        self._addresses = addresses
        self._folder = folder
        self._code = code
        self._all = list(known)
        self._changed = changed

    def start(
        self,
        count: int = 1,
        *,
        env: Mapping[str, str | None] | None = None,
        module: str | None = None,
        code: Path | None = None,
        behind: bool = False,
    ) -> list[Process]:
        """Start ``count`` more workers; ``env`` goes over the task's environment (None removes a
        variable), ``module`` runs instead of its command, and ``code`` is imported from before all
        else, for what a scenario changes on purpose. behind: see ``processes.start``."""
        task = self._task()
        container = _container(task)
        over = {**self._environment(container), **self._credentials(task), **(env or {})}
        started = []
        for _ in range(count):
            worker = processes.start(
                _with_our_python(["python", "-m", module]) if module else command(container),
                env={name: value for name, value in over.items() if value is not None},
                cwd=code or self._code,
                log=self._folder / f"worker-{len(self._all) + 1}.log",
                behind=behind,
            )
            self._all.append(worker)
            self._changed(self._all)
            started.append(worker)
        return started

    @property
    def running(self) -> list[Process]:
        return [worker for worker in self._all if worker.alive()]

    def stop(self) -> None:
        """Stop all that run: SIGTERM, a grace period, SIGKILL."""
        processes.stop(self.running, grace=STOP_GRACE_S)
        self._all.clear()
        self._changed(self._all)

    def _task(self) -> TaskDefinitionTypeDef:
        answer = self._ecs.describe_task_definition(taskDefinition=self._task_definition)
        return answer["taskDefinition"]

    def _credentials(self, task: TaskDefinitionTypeDef) -> Mapping[str, str]:
        return {} if self._credentials_of is None else self._credentials_of(task["taskRoleArn"])

    def _environment(self, container: ContainerDefinitionOutputTypeDef) -> dict[str, str]:
        """The task's environment and nothing of the caller's, plus what ECS would add."""
        return {
            **{entry["name"]: entry["value"] for entry in container.get("environment", [])},
            **CREDENTIALS,
            **self._addresses,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
            "PYTHONUNBUFFERED": "1",
        }


def _container(task: TaskDefinitionTypeDef) -> ContainerDefinitionOutputTypeDef:
    containers = task.get("containerDefinitions", [])
    if len(containers) != 1:
        raise LocalError(
            f"the task {task.get('family', '')} has {len(containers)} containers; expected one"
        )
    return containers[0]


def command(container: ContainerDefinitionOutputTypeDef) -> list[str]:
    """What the container runs: its entry point and command."""
    return _with_our_python([*container.get("entryPoint", []), *container.get("command", [])])


def _with_our_python(words: Sequence[str]) -> list[str]:
    if not words:
        raise LocalError("the bulk worker's task definition has no command")
    # The container's Python is the one this environment has.
    return [sys.executable if words[0] in ("python", "python3") else words[0], *words[1:]]

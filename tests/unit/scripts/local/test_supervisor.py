"""A bulk worker that ends is replaced, and one that cannot start is not started without pause."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from scripts.local import processes
from scripts.local.deploy import Deployed, Resource
from scripts.local.processes import Process
from scripts.local.state import StackFolder, State
from scripts.local.supervisor import LONGEST_PAUSE_S, PAUSE_S, STEADY_S, Supervisor, workers_of
from scripts.local.worker import Workers

if TYPE_CHECKING:
    from mypy_boto3_ecs import ECSClient

SLEEPS: Final = "import time; time.sleep(600)"
ENDS: Final = "pass"


class Ecs:
    """Says what a worker runs, as a deployed task definition would."""

    def __init__(self) -> None:
        self.program = SLEEPS

    def describe_task_definition(self, **_: Any) -> Any:
        return {"taskDefinition": {"containerDefinitions": [{"command": self.command}]}}

    @property
    def command(self) -> list[str]:
        return ["python", "-c", self.program]


class Stack:
    """A folder with the state of a stack that is up, and a clock."""

    def __init__(self, path: Path) -> None:
        self.folder = StackFolder("supervised", path)
        self.ecs = Ecs()
        self.now = 0.0
        self.aws = processes.start(
            [sys.executable, "-c", SLEEPS], env={}, cwd=path, log=path / "aws.log"
        )
        self.folder.write(
            State(
                aws=self.aws,
                database=self.aws,
                ready=True,
                wanted=2,
                deployed=Deployed(stack="s", outputs={}, resources={}),
            )
        )
        self.supervisor = Supervisor(self.folder, workers_of=self.workers, clock=lambda: self.now)

    def workers(self, state: State, changed: Callable[[Sequence[Process]], None]) -> Workers:
        return Workers(
            cast("ECSClient", self.ecs),
            task_definition="task",
            addresses={},
            folder=self.folder.path,
            known=state.workers,
            changed=changed,
        )

    @property
    def running(self) -> list[int]:
        return [worker.pid for worker in self.folder.read().workers if worker.alive()]

    def end(self) -> None:
        processes.stop([self.aws, *self.folder.read().workers], grace=5)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    made = Stack(tmp_path)
    try:
        yield made
    finally:
        made.end()


def test_a_worker_that_ended_is_replaced(stack: Stack) -> None:
    assert stack.supervisor.look() == 2
    first, second = stack.running
    stack.folder.read().workers[0].kill()
    stack.folder.read().workers[0].wait(10)
    stack.now += STEADY_S + 1
    assert stack.supervisor.look() == 1
    assert second in stack.running
    assert first not in stack.running
    assert len(stack.running) == 2


def test_workers_that_run_are_left_alone(stack: Stack) -> None:
    stack.supervisor.look()
    before = stack.folder.read()
    stack.now += STEADY_S + 1
    assert stack.supervisor.look() == 0
    assert stack.folder.read() == before


def test_a_worker_that_cannot_start_is_tried_ever_more_rarely(stack: Stack) -> None:
    stack.ecs.program = ENDS
    starts: list[float] = []
    while stack.now < 200:
        for worker in stack.folder.read().workers:
            worker.wait(10)
        if stack.supervisor.look():
            starts.append(stack.now)
        stack.now += PAUSE_S / 2
    pauses = [later - earlier for earlier, later in pairwise(starts)]
    assert pauses == sorted(pauses)
    assert pauses[0] < pauses[-1]
    assert max(pauses) <= LONGEST_PAUSE_S + PAUSE_S
    assert len(starts) > 5


def test_nothing_is_started_while_a_command_is_at_it(stack: Stack) -> None:
    with stack.folder.exclusive():
        assert stack.supervisor.look() == 0
    assert stack.supervisor.look() == 2


def test_nothing_is_started_for_a_stack_that_is_down_or_not_ready(stack: Stack) -> None:
    state = stack.folder.read()
    stack.folder.write(state.model_copy(update={"ready": False}))
    assert stack.supervisor.look() == 0
    stack.folder.write(state)
    stack.end()
    assert stack.supervisor.look() == 0
    stack.folder.clear()
    assert stack.supervisor.look() == 0


def test_a_worker_starts_where_the_teams_own_code_is(tmp_path: Path) -> None:
    task = Resource(type="AWS::ECS::TaskDefinition", id="worker")
    deployed = Deployed(stack="Shop", outputs={}, resources={"Task": task})
    state = State(port=1, database_port=2, deployed=deployed, code=tmp_path / "own")
    workers = workers_of(StackFolder("one", tmp_path), state, lambda _: None)
    assert workers._code == tmp_path / "own"

"""What a bulk worker of a local stack starts with."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from scripts.local.worker import Workers

PROGRAM: Final = "import json, os; print(json.dumps([os.getcwd(), dict(os.environ)]))"
VARIABLES: Final = [{"name": name, "value": "deployed"} for name in ("KEPT", "CHANGED", "REMOVED")]
CONTAINER: Final = {"command": ["python", "-c", PROGRAM], "environment": VARIABLES}


def started(folder: Path, **what: Any) -> tuple[str, dict[str, str]]:
    """Its folder and its environment."""
    task = {"taskDefinition": {"containerDefinitions": [CONTAINER]}}
    ecs: Any = SimpleNamespace(describe_task_definition=lambda **_: task)
    workers = Workers(
        ecs,
        task_definition="task",
        addresses={},
        folder=folder,
        code=folder,
        known=[],
        changed=lambda _: None,
    )
    [worker] = workers.start(**what)
    worker.wait(30)
    place, environment = json.loads(worker.log.read_text())
    return place, environment


def test_what_a_scenario_changes_goes_over_the_tasks_environment(tmp_path: Path) -> None:
    other = tmp_path / "release"
    other.mkdir()
    place, environment = started(tmp_path, env={"CHANGED": "here", "REMOVED": None}, code=other)
    assert (environment["KEPT"], environment["CHANGED"]) == ("deployed", "here")
    assert "REMOVED" not in environment
    assert Path(place) == other.resolve()


def test_a_worker_starts_as_its_task_says(tmp_path: Path) -> None:
    place, environment = started(tmp_path)
    assert {environment[each["name"]] for each in VARIABLES} == {"deployed"}
    assert Path(place) == tmp_path.resolve()

"""``fairlane local``: what it says of a stack, and the options it refuses before it starts one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from scripts.commands import local
from scripts.local import processes
from scripts.local import stack as stack_module
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.stack import LocalStack
from scripts.local.state import StackFolder, State


@pytest.fixture
def state(tmp_path: Path) -> Iterator[State]:
    """Of a stack whose six processes run."""
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    made = [processes.start(command, env={}, cwd=tmp_path, log=tmp_path / "log") for _ in range(6)]
    aws, database, search, supervisor, *workers = made
    try:
        yield State(
            aws=aws,
            database=database,
            search=search,
            supervisor=supervisor,
            workers=tuple(workers),
            wanted=2,
            ready=True,
        )
    finally:
        processes.stop(made, grace=5)


def end(process: Process | None) -> None:
    assert process is not None
    process.kill()
    process.wait(10)


def shown(state: State) -> list[str]:
    return " ".join(local._row("default", state).values()).split()


def test_status_says_how_many_of_how_many_workers_run(state: State) -> None:
    assert shown(state) == ["default", "up", "2", "of", "2"]
    end(state.workers[0])
    assert shown(state) == ["default", "up", "1", "of", "2"]
    assert local._facts(state)["workers"] == [state.workers[1].pid]
    assert local._facts(state)["workers_wanted"] == 2


def test_status_names_the_parts_that_ended(state: State) -> None:
    end(state.search)
    assert local._state(state) == "up, but search ended"
    end(state.supervisor)
    assert local._state(state) == "up, but search and supervisor ended"
    facts = local._facts(state)
    assert (facts["search"], facts["supervisor"], facts["up"]) == (False, False, True)
    end(state.database)
    assert local._state(state) == "not up"


def test_records_and_empty_exclude_each_other(tmp_path: Path) -> None:
    asked = CliRunner().invoke(local.app, ["up", "--records", str(tmp_path), "--empty"])
    assert asked.exit_code == 2
    assert "exclude each other" in asked.output


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "cannot be read: Expecting property name"), ("[1]", "must hold one JSON object")],
)
def test_a_bad_file_of_settings_is_named(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(content)
    with pytest.raises(LocalError, match=said):
        local._read(file)
    with pytest.raises(LocalError, match="cannot be read"):
        local._read(tmp_path / "missing.json")
    file.write_text(json.dumps({"due_shards": 3}))
    assert local._read(file) == {"due_shards": 3}


def test_a_folder_that_cannot_be_written_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = StackFolder("default", tmp_path / "file")
    with pytest.raises(LocalError, match="the stack's state cannot be kept"), folder.exclusive():
        pass


@pytest.mark.parametrize(("command", "method"), [("up", "up"), ("deploy", "deploy")])
def test_the_app_has_the_operations_that_cdk_json_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, method: str
) -> None:
    """Of a stack that a program starts, the program decides."""
    seen: list[dict[str, Any]] = []
    (tmp_path / "cdk.json").write_text('{"context": {"fairlane": {"operations": "./ours"}}}')

    def synthesised(stack: LocalStack) -> None:
        stack.project = tmp_path
        for with_cdk_json in (stack.with_cdk_json, False):
            stack.with_cdk_json = with_cdk_json
            stack._synthesis({"due_shards": 3}, search=False)
        raise LocalError("enough")

    monkeypatch.setattr(LocalStack, method, synthesised)
    monkeypatch.setattr(stack_module, "Synthesis", lambda chosen, *_, **__: seen.append(chosen))
    CliRunner().invoke(local.app, [command])
    assert [found.get("operations") for found in seen] == ["./ours", None]
    assert [found["due_shards"] for found in seen] == [3, 3]

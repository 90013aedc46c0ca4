"""A local stack with a person's own records: it is filled, healed, deployed onto and kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from handlers.settings import EffectSettings
from scripts.local.errors import LocalError, NotUp
from scripts.local.processes import Process
from scripts.local.project import PROJECT
from scripts.local.records import read, scan
from scripts.local.stack import LocalStack
from scripts.opensearch.client import client_of

RECORDS: Final = """{"tenant": "own", "id": "001", "name": "Zürich", "price": 1.25}
{"tenant": "own", "id": "1", "version": 7, "tags": ["a", "b"]}
"""


@dataclass(frozen=True)
class Begun:
    """A stack, and what was in it when it had started."""

    stack: LocalStack
    versions: Mapping[str, int]
    documents: Mapping[str, int]
    holdings: Mapping[str, int]


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Begun]:
    folder = tmp_path_factory.mktemp("life")
    file = folder / "records.jsonl"
    file.write_text(RECORDS, encoding="utf-8")
    made = LocalStack("life", root=folder, records=file, search=True, supervised=True).up()
    try:
        versions = {name: item["version"] for name, item in records(made).items()}
        yield Begun(made, versions, documents(made), made.holdings())
    finally:
        made.down()


@pytest.fixture
def life(begun: Begun) -> LocalStack:
    return begun.stack


def records(stack: LocalStack) -> dict[str, Any]:
    table = stack.deployed.outputs["RecordsTable"]
    return {item["id"]: dict(item) for item in scan(stack.clients.dynamodb, table)}


def documents(stack: LocalStack) -> dict[str, int]:
    """Record id to version, of what the index holds."""
    with client_of(stack.state.search_url) as client:
        hits = client.search(index=EffectSettings().search_index, body={"size": 100})["hits"][
            "hits"
        ]
    return {hit["_source"]["id"]: hit["_source"]["version"] for hit in hits}


def eventually(seen: Callable[[], bool]) -> None:
    """The looks are counted only so that what never happens ends the run."""
    for _ in range(3000):
        if seen():
            return
        time.sleep(0.1)
    raise AssertionError("it does not happen")


def test_the_records_of_the_file_are_there_and_nothing_else(begun: Begun) -> None:
    assert begun.versions == {"001": 1, "1": 7}
    assert begun.holdings == {"records": 2, "jobs": 0}


def test_the_index_holds_every_record(begun: Begun) -> None:
    assert begun.documents == {"001": 1, "1": 7}


def test_a_bad_file_is_refused_before_anything_starts(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"tenant": "own"}\n')
    stack = LocalStack("bad", root=tmp_path, records=file)
    with pytest.raises(LocalError, match="line 1: id is missing"):
        stack.up()
    assert not stack.folder.path.exists()


def test_a_worker_that_is_killed_is_replaced(life: LocalStack) -> None:
    def running() -> list[Process]:
        return [worker for worker in life.folder.read().workers if worker.alive()]

    [first] = running()
    first.kill()

    def replaced() -> bool:
        workers = running()
        return len(workers) == 1 and workers != [first]

    eventually(replaced)


def test_changed_code_and_settings_are_deployed_and_data_and_address_stay(
    life: LocalStack, tmp_path: Path
) -> None:
    before, address = records(life), life.state.api_url
    job = life.api.call(
        "POST",
        "/v1/jobs",
        tenant="own",
        body={
            "operation": "set_fields",
            "subject": "before",
            "params": {"fields": {"checked": True}},
            "ids": ["001"],
        },
    ).body
    project = tmp_path / "project"
    for name in ("app.py", "cdk.json", "infra", "handlers", "fairlane", "requirements"):
        source = PROJECT / name
        copy = shutil.copytree if source.is_dir() else shutil.copy
        project.mkdir(exist_ok=True)
        copy(source, project / name)
    registry = project / "handlers" / "operations" / "set_fields.py"
    registry.write_text(registry.read_text() + "\n# changed\n")
    refused = LocalStack("life", root=life.folder.path.parent, settings={"due_shard": 3})
    refused.project = project
    with pytest.raises(LocalError, match="due_shard is not known here") as error:
        refused.deploy()
    assert "Traceback" not in str(error.value)
    assert refused.folder.read().settings == {}  # the next update has nothing of it
    deploying = LocalStack("life", root=life.folder.path.parent, settings={"due_shards": 3})
    deploying.project = project
    assert deploying.deploy()
    assert deploying.folder.read().settings == {"due_shards": 3}
    assert deploying.state.api_url == address
    assert deploying.folder.read().up
    assert set(records(deploying)) == set(before)
    found = deploying.api.call("GET", f"/v1/jobs/{job['id']}", tenant="own")
    assert (found.status, found.body["subject"]) == (200, "before")
    [worker] = deploying.workers.running
    assert psutil.Process(worker.pid).environ()["FAIRLANE_DUE_SHARDS"] == "3"
    for function in functions(deploying):
        code = deploying.clients.lambda_.get_function(FunctionName=function)["Configuration"]
        assert code["Environment"]["Variables"].get("FAIRLANE_DUE_SHARDS", "3") == "3"
    life.attach()


def functions(stack: LocalStack) -> list[str]:
    return [
        resource.id
        for resource in stack.deployed.resources.values()
        if resource.type == "AWS::Lambda::Function"
    ]


def test_what_has_ended_is_started_again(life: LocalStack) -> None:
    life.attach()
    state = life.folder.read()
    assert state.supervisor is not None
    assert state.search is not None
    address = state.search_url
    for process in (state.supervisor, state.search, *state.workers):
        process.kill()
    for process in (state.supervisor, state.search, *state.workers):
        eventually(lambda process=process: not process.alive())  # type: ignore[misc]
    said = life.heal()
    assert [line.split(" had ended")[0] for line in said] == [
        "The search engine",
        "1 of 1 bulk workers",
        "The supervisor of the bulk workers",
    ]
    assert life.state.search_url == address
    assert documents(life) == {name: item["version"] for name, item in records(life).items()}
    assert life.heal() == []


def test_the_records_can_be_kept(tmp_path: Path) -> None:
    """On a stack of its own, which is down in the end."""
    first = tmp_path / "first.jsonl"
    first.write_text(RECORDS, encoding="utf-8")
    with LocalStack("kept", root=tmp_path, records=first, workers=0) as stack:
        before = records(stack)
        file = tmp_path / "kept.jsonl"
        assert stack.down(keep=file) > 0
        assert {item["id"]["S"] for item in read(file)} == set(before) == {"001", "1"}
        assert [log.name for log in stack.folder.path.glob("ministack.log")] == ["ministack.log"]
        with pytest.raises(NotUp):
            stack.deploy()
    again = LocalStack("again", root=tmp_path, records=file, workers=0).up()
    try:
        assert records(again) == before
    finally:
        again.down()

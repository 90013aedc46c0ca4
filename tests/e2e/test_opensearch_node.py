"""A real OpenSearch node: what it shows that decides how Fairlane queries and indexes, and that it
starts and stops cleanly. The embedded engine beside it: what it shows too, and what it can't.

Without the programs for a node these tests are skipped on a developer's machine. In CI they fail.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from opensearchpy import OpenSearch
from opensearchpy.exceptions import RequestError

from handlers.aws.search_mapping import create_index
from handlers.aws.search_query import SearchQuery
from handlers.effects.search_index import SearchIndex
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.filters import Filter
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.runtime import ManualRuntime
from scripts.local.errors import AlreadyUp
from scripts.local.processes import Process
from scripts.opensearch.errors import SearchEngineError
from scripts.opensearch.node import ADDRESS, OpenSearchNode, Way
from scripts.opensearch.state import NodeState
from tests.support.nodes import or_skip

MAPPING: Final = {
    "properties": {
        "id": {"type": "keyword"},
        "created": {"type": "long"},
        "city": {"type": "keyword"},
    }
}
LARGEST_LONG: Final = 2**63 - 1


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchNode]:
    found = OpenSearchNode(tmp_path_factory.mktemp("node") / "node")
    or_skip(lambda: found.up(parent=os.getpid()), os.environ)
    try:
        yield found
    finally:
        found.down()


@pytest.fixture
def real(node: OpenSearchNode) -> Iterator[OpenSearch]:
    with node.client() as client:
        yield client


@pytest.fixture(params=["real", "embedded"])
def either(request: pytest.FixtureRequest) -> OpenSearch:
    """What both engines must show."""
    client: OpenSearch = request.getfixturevalue(request.param)
    return client


def new_index(client: OpenSearch, **settings: Any) -> str:
    """An empty index of its own that is refreshed only when asked to."""
    name = f"test-{uuid.uuid4().hex}"
    index = {"number_of_replicas": 0, "refresh_interval": "-1", **settings}
    client.indices.create(index=name, body={"settings": {"index": index}, "mappings": MAPPING})
    return name


def index_action(record: Mapping[str, Any], version: int) -> list[Mapping[str, Any]]:
    meta = {"_id": record["id"], "version": version, "version_type": "external"}
    return [{"index": meta}, record]


def bulk(
    client: OpenSearch, index: str, *actions: Sequence[Mapping[str, Any]], refresh: bool = False
) -> list[dict[str, Any]]:
    """Each item's outcome, in order."""
    lines = [line for action in actions for line in action]
    answer = client.bulk(body=lines, index=index, params={"refresh": str(refresh).lower()})
    return [next(iter(item.values())) for item in answer["items"]]


def load(client: OpenSearch, index: str, records: Sequence[Mapping[str, Any]]) -> None:
    items = bulk(client, index, *(index_action(record, 1) for record in records), refresh=True)
    assert {item["status"] for item in items} == {201}


def count(client: OpenSearch, index: str) -> int:
    return int(client.count(index=index)["count"])


def walk(
    client: OpenSearch, index: str, sort: Sequence[Any], size: int = 10
) -> tuple[list[str], list[list[Any]]]:
    """All ids by search_after, the cursor of each page sent back as it came; and the cursors."""
    ids: list[str] = []
    cursors: list[list[Any]] = []
    while True:
        body: dict[str, Any] = {"size": size, "sort": list(sort)}
        if cursors:
            body["search_after"] = cursors[-1]
        hits = client.search(index=index, body=body)["hits"]["hits"]
        if not hits:
            return ids, cursors
        ids += [hit["_id"] for hit in hits]
        cursors.append(hits[-1]["sort"])
        assert len(cursors) <= 1_000, "the walk does not end"


# --- an index lags ------------------------------------------------------------------------------


def test_a_write_is_found_only_after_a_refresh(real: OpenSearch) -> None:
    index = new_index(real)
    [written] = bulk(real, index, index_action({"id": "a"}, 1))
    assert written["status"] == 201
    assert real.get(index=index, id="a")["_version"] == 1  # it is there
    assert count(real, index) == 0
    assert walk(real, index, ["id"]) == ([], [])
    real.indices.refresh(index=index)
    assert count(real, index) == 1
    assert walk(real, index, ["id"])[0] == ["a"]


def test_a_changed_record_is_found_by_its_old_values_until_a_refresh(real: OpenSearch) -> None:
    index = new_index(real)
    load(real, index, [{"id": "a", "city": "Bern"}])
    bulk(real, index, index_action({"id": "a", "city": "Rom"}, 2))
    query = {"query": {"term": {"city": "Bern"}}}
    assert real.count(index=index, body=query)["count"] == 1
    real.indices.refresh(index=index)
    assert real.count(index=index, body=query)["count"] == 0


def test_a_write_that_asks_for_a_refresh_is_found_at_once(real: OpenSearch) -> None:
    index = new_index(real)
    bulk(real, index, index_action({"id": "a"}, 1), refresh=True)
    assert count(real, index) == 1


def test_the_embedded_engine_does_not_lag(embedded: OpenSearch) -> None:
    """Why a real node is needed. If this fails, osmem-server has learned it, and the checks that
    need a lagging index may run on it."""
    index = new_index(embedded)
    bulk(embedded, index, index_action({"id": "a"}, 1))
    assert count(embedded, index) == 1


# --- external versions --------------------------------------------------------------------------


def test_an_older_version_is_refused_for_itself_in_an_answer_of_200(either: OpenSearch) -> None:
    index = new_index(either)
    load(either, index, [{"id": "a"}])
    bulk(either, index, index_action({"id": "a", "city": "new"}, 5))
    actions = [index_action({"id": "a", "city": "late"}, 4), index_action({"id": "b"}, 1)]
    late, beside = bulk(either, index, *actions)
    assert (late["status"], late["error"]["type"]) == (409, "version_conflict_engine_exception")
    assert beside["status"] == 201
    assert either.get(index=index, id="a")["_source"]["city"] == "new"


def test_the_same_version_again_is_refused(either: OpenSearch) -> None:
    index = new_index(either)
    load(either, index, [{"id": "a"}])
    [again] = bulk(either, index, index_action({"id": "a"}, 1))
    assert again["status"] == 409


def delete_action(record_id: str, version: int) -> list[Mapping[str, Any]]:
    return [{"delete": {"_id": record_id, "version": version, "version_type": "external"}}]


def test_a_late_index_does_not_bring_back_what_was_deleted(either: OpenSearch) -> None:
    index = new_index(either)
    load(either, index, [{"id": "a"}])
    [deleted] = bulk(either, index, delete_action("a", 3))
    assert (deleted["status"], deleted["result"]) == (200, "deleted")
    [late] = bulk(either, index, index_action({"id": "a"}, 2))
    assert late["status"] == 409
    either.indices.refresh(index=index)
    assert count(either, index) == 0
    [newer] = bulk(either, index, index_action({"id": "a"}, 4))
    assert newer["status"] == 201


def test_a_delete_is_remembered_for_gc_deletes_only(real: OpenSearch) -> None:
    """The limit of the test above: 60 s by default. Then even an older version is taken."""
    index = new_index(real, gc_deletes="1ms")
    load(real, index, [{"id": "a"}])
    bulk(real, index, delete_action("a", 3))
    for _ in range(6000):  # counted only so that what never happens ends the run
        real.indices.refresh(index=index)  # which forgets deletes that are old enough
        [late] = bulk(real, index, index_action({"id": "a"}, 2))
        if late["status"] == 201:
            return
        time.sleep(0.05)
    pytest.fail("the delete was remembered")


# --- one index for many tenants -----------------------------------------------------------------

SCHEMA: Final = RecordSchema()
CHEAP: Final = Filter.model_validate({"all": [{"field": "price", "op": "lt", "value": 50}]})
ODD: Final[Sequence[Mapping[str, Any]]] = (
    {f"field{n}": n for n in range(1200)},
    {"price": "cheap"},
    {"price": {"of": "a map"}},
    {"price": ["a", {"b": 1}]},
    {"price.of": 1},
)
"""Records of another tenant."""


@pytest.mark.parametrize("odd", ODD)
def test_c102_another_tenants_records_hide_and_refuse_none(
    either: OpenSearch, odd: Mapping[str, Any]
) -> None:
    index, fields = f"test-{uuid.uuid4().hex}", {"price": "number"}
    create_index(either, index, SCHEMA, fields)
    sink = SearchIndex(either, index, SCHEMA, ManualRuntime(), fields)
    for tenant, holds in (("other", odd), ("acme", {"price": 9, **dict.fromkeys(odd, 9)})):
        written = Projection("a", 1, Record(tenant, "a", 1, holds))
        delivered = sink.deliver(Batch("job", 0, tenant, "op", [written]))
        assert (delivered.again, delivered.refused) == (frozenset(), {})
    either.indices.refresh(index=index)
    query = SearchQuery(either, index, SCHEMA, ManualRuntime(), fields)
    assert [each.id for each in query.page("acme", CHEAP, None, 10).found] == ["a"]


def test_an_index_that_learns_its_fields_hides_a_record_without_a_word(real: OpenSearch) -> None:
    """The control of the test above: a text came first, and no error tells of it."""
    index = f"test-{uuid.uuid4().hex}"
    bulk(real, index, index_action({"id": "other", "price": "cheap"}, 1))
    load(real, index, [{"id": "a", "price": 9}])
    found = real.count(index=index, body={"query": {"range": {"price": {"lt": 50}}}})
    assert (found["count"], found["_shards"]["failed"]) == (0, 0)


def test_an_index_that_learns_its_fields_refuses_the_next_ones(real: OpenSearch) -> None:
    index = f"test-{uuid.uuid4().hex}"
    load(real, index, [{"id": "other", **{f"field{n}": n for n in range(990)}}])
    [refused] = bulk(real, index, index_action({"id": "a", **{f"own{n}": n for n in range(9)}}, 1))
    assert refused["status"] == 400
    assert "total fields" in refused["error"]["reason"]


# --- search_after -------------------------------------------------------------------------------


def test_ties_are_walked_once_each(either: OpenSearch) -> None:
    index = new_index(either)
    records = [{"id": f"{number:03}", "created": 1_700_000_000_000} for number in range(250)]
    load(either, index, records[::2] + records[1::2])
    ids, cursors = walk(either, index, ["created", "id"])
    assert ids == [record["id"] for record in records]
    assert len(cursors) == 25


def test_ties_without_a_tie_breaker_are_lost(either: OpenSearch) -> None:
    """The control of the test above."""
    index = new_index(either)
    records = [{"id": f"{number:03}", "created": 1_700_000_000_000} for number in range(250)]
    load(either, index, records)
    assert len(walk(either, index, ["created"])[0]) == 10


@pytest.mark.parametrize(
    ("field", "cursor"), [("created", LARGEST_LONG), ("city", None)], ids=["long", "keyword"]
)
@pytest.mark.parametrize("size", [1, 5, 10, 25, 26])
def test_records_without_the_sort_field_come_last(
    either: OpenSearch, field: str, cursor: object, size: int
) -> None:
    """The cursor inside them is a placeholder: the largest long, or null. Sent back unchanged, it
    goes on exactly there."""
    index = new_index(either)
    values = {"created": 7, "city": "Rom"}
    records = [{"id": f"{n:02}", **({field: values[field]} if n < 20 else {})} for n in range(25)]
    load(either, index, records)
    ids, cursors = walk(either, index, [field, "id"], size)
    assert ids == [record["id"] for record in records]
    assert cursors[-1] == [cursor, "24"]


def test_a_cursor_whose_numbers_became_doubles_repeats_records(real: OpenSearch) -> None:
    """Why cursors are stored as they came: no error tells of it."""
    index = new_index(real)
    load(real, index, [{"id": f"{n:02}", "created": 2**60 + n} for n in range(25)])
    page = {"size": 10, "sort": ["created", "id"]}
    first = real.search(index=index, body=page)["hits"]["hits"]
    created, last = first[-1]["sort"]
    rounded = {**page, "search_after": [float(created), last]}
    second = real.search(index=index, body=rounded)["hits"]["hits"]
    assert (last, second[0]["_id"]) == ("09", "01")


def test_a_sort_field_without_a_mapping_is_an_error(either: OpenSearch) -> None:
    index = new_index(either)
    load(either, index, [{"id": "a"}])
    with pytest.raises(RequestError, match="No mapping found for"):
        walk(either, index, ["surprise", "id"])


def test_large_numbers_are_doubles_to_the_embedded_engine(embedded: OpenSearch) -> None:
    """If this fails, it has learned better: say so in docs/opensearch.md."""
    index = new_index(embedded)
    load(embedded, index, [{"id": "a", "created": 2**60 + 1}, {"id": "b", "created": 2**60}])
    assert walk(embedded, index, ["created", "id"])[0] == ["a", "b"]


def test_large_numbers_are_in_order(real: OpenSearch) -> None:
    index = new_index(real)
    load(real, index, [{"id": "a", "created": 2**60 + 1}, {"id": "b", "created": 2**60}])
    assert walk(real, index, ["created", "id"])[0] == ["b", "a"]


def test_a_point_in_time_stands_still(either: OpenSearch) -> None:
    index = new_index(either)
    load(either, index, [{"id": "a"}, {"id": "b"}])
    point = either.create_pit(index=index, params={"keep_alive": "1m"})["pit_id"]
    bulk(either, index, delete_action("a", 2), index_action({"id": "c"}, 1), refresh=True)
    body = {"pit": {"id": point, "keep_alive": "1m"}, "sort": ["id"]}
    found = [hit["_id"] for hit in either.search(body=body)["hits"]["hits"]]
    either.delete_pit(body={"pit_id": [point]})
    assert found == ["a", "b"]
    assert walk(either, index, ["id"])[0] == ["b", "c"]


# --- start and stop -----------------------------------------------------------------------------


@pytest.fixture
def ours(node: OpenSearchNode) -> OpenSearchNode:
    """The node, if these tests started it."""
    if node.given:
        pytest.skip(f"{ADDRESS} names somebody else's")
    return node


def test_another_command_attaches_but_starts_no_second(ours: OpenSearchNode) -> None:
    again = OpenSearchNode(ours.folder.path)
    with pytest.raises(AlreadyUp, match="is up already"):
        again.up()
    assert again.attach().url == ours.url
    assert again.running()


def test_one_command_at_a_time(ours: OpenSearchNode) -> None:
    with ours.folder.exclusive(), pytest.raises(SearchEngineError, match="another command"):
        OpenSearchNode(ours.folder.path).down()
    assert ours.running()


def test_an_address_in_the_environment_is_used_as_it_is(
    node: OpenSearchNode, tmp_path: Path
) -> None:
    environ = {"PATH": str(tmp_path), ADDRESS: f"{node.url}/"}
    with OpenSearchNode(tmp_path / "none", environ=environ) as found, found.client() as client:
        assert found.url == node.url
        assert client.ping()
    assert not (tmp_path / "none").exists()
    with node.client() as client:
        assert client.ping()


def test_an_address_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    """Rather than another node than the one that was meant. The message keeps a password."""
    environ = {"PATH": "", ADDRESS: "http://user:secret@127.0.0.1:1"}
    with pytest.raises(SearchEngineError, match="does not answer") as caught:
        OpenSearchNode(tmp_path / "none", environ=environ).up()
    assert "secret" not in str(caught.value)


@pytest.fixture
def killed_owner(ours: OpenSearchNode, tmp_path: Path) -> Process:
    """A node whose ``with`` was ended by SIGKILL."""
    program = (
        "import os, pathlib, sys; from scripts.opensearch.node import OpenSearchNode, Way\n"
        "with OpenSearchNode(pathlib.Path(sys.argv[1]), way=Way.JAVA) as node:\n"
        "    print(node.state.model_dump_json(), flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "node")]
    if ours.state.how != "java":
        pytest.skip("a container outlives whoever started it")
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == -9, run.stderr
    process = NodeState.model_validate_json(run.stdout).process
    assert process is not None
    return process


def test_a_node_ends_with_its_owner(killed_owner: Process) -> None:
    killed_owner.wait(600)
    assert not killed_owner.alive()


def test_down_ends_the_node_and_keeps_its_log(ours: OpenSearchNode, tmp_path: Path) -> None:
    other = OpenSearchNode(tmp_path / "node", way=Way.JAVA if ours.state.process else Way.AUTO)
    other.up(parent=os.getpid())
    try:
        assert other.url != ours.url
        state = other.state
    finally:
        assert other.down()
    assert not other.down()
    assert state.process is None or not state.process.alive()
    assert [path.name for path in other.folder.path.iterdir()] in ([], ["node.log"])
    assert ours.running()
    with pytest.raises(SearchEngineError, match="no OpenSearch node is up"):
        other.attach()

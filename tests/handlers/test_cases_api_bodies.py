"""Cases of requests whose body or page token is wrong: what is said of it, and to what it leads."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.limits import MAX_PARAMS_BYTES
from tests.handlers.deployment import TENANT, Deployment, deployed, job

if TYPE_CHECKING:
    from collections.abc import Sequence

CONDITION: Final = '{"field":"a","op":"eq","value":1}'
REPEATED: Final = (
    # what a body has beside its subject, the path of the repeated name
    ('"operation":"reindex","ids":["a","b"],"ids":["c"]', "ids"),
    ('"operation":"reindex","ids":["a"],"\\u0069ds":["c"]', "ids"),
    ('"operation":"reindex","operation":"reindex","ids":["a"]', "operation"),
    (f'"operation":"reindex","query":{{"all":[{CONDITION}],"all":[{CONDITION}]}}', "query.all"),
    (
        f'"operation":"reindex","query":{{"all":[{CONDITION},{CONDITION[:-1]},"value":2}}]}}',
        "query.all[1].value",
    ),
    (
        '"operation":"set_fields","ids":["a"],"params":{"fields":{"b":[{"x":{"y z":1,"y z":1}}]}}',
        'params.fields.b[0].x["y z"]',
    ),
    ('"operation":"reindex","ids":["a"],"labels":{"a":"1","a":"1"}', "labels.a"),
    ('"operation":"reindex","ids":["a"],"notify":{"url":"","url":""}', "notify.url"),
)
INSIDE: Final = re.compile(
    r"sys\.|recursion|dictionary|instance of|InvalidOperation|<class|Input should|Extra inputs|"
    r"\[key\]|\.\.|pydantic|\bint\b|\bstr\b|\bbool\b|Field required|Decimal",
)
"""Words of Python and of libraries."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Deployment]:
    """One deployment: what is refused must not change it."""
    with pytest.MonkeyPatch.context() as monkeypatch, deployed(monkeypatch) as stack:
        stack.created(stack.fill(2))
        yield stack


@pytest.mark.parametrize(("body", "path"), REPEATED)
@pytest.mark.parametrize("query", [None, {"validate_only": "true"}])
def test_c84_a_name_given_twice_is_refused_and_named_at_every_depth(
    shared: Deployment, body: str, path: str, query: dict[str, str] | None
) -> None:
    before = shared.everything()
    answer = shared.call("POST", "/v1/jobs", f'{{"subject":"s",{body}}}', query=query)
    assert (answer.status, answer.body.get("field")) == (400, path), answer
    assert "given more than once" in answer.body["detail"]
    assert shared.everything() == before


def test_c84_a_name_given_twice_is_refused_on_every_route_with_a_body(shared: Deployment) -> None:
    answer = shared.call("POST", "/v1/uploads", '{"format":"jsonl","format":"csv","column":"a"}')
    assert (answer.status, answer.body["field"]) == (400, "format")


def test_c84_the_same_name_in_different_objects_is_no_repetition(shared: Deployment) -> None:
    values = {"fields": {"a": {"a": [{"a": 1}, {"a": 2}]}}}
    body = {**job(["a"], "other"), "operation": "set_fields", "params": values}
    assert shared.call("POST", "/v1/jobs", body, query={"validate_only": "true"}).status == 200


# --- words ------------------------------------------------------------------------------------


def _every_wrong_part() -> Sequence[dict[str, Any]]:
    """Bodies in which each part in turn is of each wrong kind."""
    wrong: Sequence[Any] = (None, 7, -1, 1.5, "x", "", [], [1], {}, {"": ""}, {"a": {}}, True)
    names = (
        *("operation", "subject", "ids", "upload_id", "query", "traversal", "labels", "notify"),
        *("tolerated_failure_percent", "params", "surprise", ""),
    )
    at_the_top = [{**job(["a"]), name: value} for name in names for value in wrong]
    params = [
        job(["a"], params={"field": "price", "add": 1, name: value})
        for name in ("field", "add", "multiply", "places", "minimum", "more")
        for value in wrong
    ]
    conditions = [
        {"operation": "reindex", "subject": "s", "query": {"all": [condition]}}
        for value in wrong
        for condition in (
            value,
            {"field": value, "op": "eq", "value": 1},
            {"field": "a", "op": value, "value": 1},
            *({"field": "a", "op": op, "value": value} for op in ("in", "lt", "prefix", "exists")),
            {"field": "a", "op": "eq", "value": 1, "more": value},
        )
    ]
    return [*at_the_top, *params, *conditions]


def test_c91_what_is_wrong_with_a_body_is_said_in_the_words_of_its_sender(
    shared: Deployment,
) -> None:
    texts = {
        error["detail"]
        for body in _every_wrong_part()
        for answer in [shared.call("POST", "/v1/jobs", body, query={"validate_only": "true"})]
        if answer.status >= 400
        for error in [answer.body, *answer.body.get("errors", ())]
    }
    assert len(texts) > 30
    assert [text for text in texts if INSIDE.search(text)] == []


@pytest.mark.parametrize(
    "body",
    [
        "[" * 100_000,
        '{"a":' * 5000,
        json.dumps(job(["a"])).replace('"add": 1', f'"add": {"9" * 5000}'),
        json.dumps(job(["a"])).replace('"add": 1', '"add": 1e99999999999999999999'),
        json.dumps(job(["a"])).replace('"add": 1', '"add": NaN'),
        '{"a" 1}',
        "",
    ],
)
def test_c91_what_is_no_json_is_said_in_the_words_of_its_sender(
    shared: Deployment, body: str
) -> None:
    answer = shared.call("POST", "/v1/jobs", body)
    assert answer.status == 400
    assert not INSIDE.search(answer.body["detail"])


def test_c91_everything_wrong_with_a_body_is_named_at_once_with_a_pointer_each(
    shared: Deployment,
) -> None:
    body = {
        "operation": "adjust_number",
        "subject": "",
        "ids": ["a"],
        "query": {"all": [{"field": "a", "op": "eq", "value": 1}]},
        "params": {"field": "price", "add": "much", "more": 1},
        "labels": {"": "x", "a/b": 7, "c~d": ""},
        "tolerated_failure_percent": 101,
        "surprise": 1,
    }
    answer = shared.call("POST", "/v1/jobs", body)
    assert answer.status == 400
    assert {error["pointer"] for error in answer.body["errors"]} == {
        "#/subject",
        "#/query",
        "#/params/add",
        "#/params/more",
        "#/labels/",
        "#/labels/a~1b",
        "#/labels/c~0d",
        "#/tolerated_failure_percent",
        "#/surprise",
    }
    first = answer.body["errors"][0]
    assert answer.body["field"] == first["field"] == "subject"
    assert answer.body["detail"] == f"subject: {first['detail']}"


def test_c91_very_many_errors_of_a_body_are_cut_short(shared: Deployment) -> None:
    body = {**job(["a"]), **{f"x{n}": 1 for n in range(5000)}}
    answer = shared.call("POST", "/v1/jobs", body)
    assert (answer.status, len(answer.body["errors"])) == (400, 20)


# --- page tokens ------------------------------------------------------------------------------


def _token(list_: list[str], place: list[Any]) -> str:
    """As a client can make one: how is no secret."""
    digest = hashlib.sha256(b"fairlane-page:" + json.dumps([list_, place]).encode()).hexdigest()
    text = json.dumps([digest[:16], *place])
    return base64.urlsafe_b64encode(text.encode()).decode()


PLACES: Final[Sequence[list[Any]]] = (
    ["\ud800", 0],
    ["", 0],
    ["x" * 2000, 0],
    ["OUTCOME#\udc00", 0],
    ["JOB", 0],
    ["EFFECT#000000000001", 0],
    ["OUTCOME#000000000001", -1],
    ["OUTCOME#000000000001", True],
    ["OUTCOME#000000000001", 10**400],
    ["OUTCOME#000000000001"],
    ["FAILED##00000000001", 0],
    ["SKIPPED#000000000001", 0],
    [None, None],
    [1.5, 0],
    [],
)


@pytest.mark.parametrize("place", PLACES, ids=[str(n) for n in range(len(PLACES))])
def test_c107_a_page_token_that_a_client_made_up_is_refused(
    shared: Deployment, place: list[Any]
) -> None:
    found = shared.call("GET", "/v1/jobs").body["jobs"][-1]
    for outcome in ("failed", "refused"):
        text = _token([TENANT, "items", found["id"], outcome], place)
        answer = shared.call(
            "GET", f"/v1/jobs/{found['id']}/items", query={"outcome": outcome, "page": text}
        )
        assert (answer.status, answer.body["field"]) == (400, "page")
    list_ = [TENANT, "jobs", "[]", "None", "[]", "None", "None"]
    answer = shared.call("GET", "/v1/jobs", query={"page": _token(list_, place[:1])})
    assert (answer.status, answer.body["field"]) == (400, "page")


# --- sizes ------------------------------------------------------------------------------------


def test_parameters_over_their_size_are_refused_before_they_are_read(
    shared: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = shared.world.operations["set_fields"]

    def read(*_: object, **__: object) -> None:
        raise AssertionError("the parameters were checked before their size")

    monkeypatch.setattr(operation.parameters, "model_validate", read)
    values = {"fields": {f"f{n}": n for n in range(MAX_PARAMS_BYTES // 8)}}
    body = {**job(["a"], "large"), "operation": "set_fields", "params": values}
    answer = shared.call("POST", "/v1/jobs", body)
    assert (answer.status, answer.body["field"]) == (413, "params")

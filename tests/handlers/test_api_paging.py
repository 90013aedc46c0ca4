"""Lists in pages, and tokens that only go on where they came from."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from handlers.jobs.storage.transaction import execute
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.web import job_list, page_tokens
from handlers.web.job_list import Wanted
from tests.handlers.deployment import TENANT

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

JOB_ID = f"{7:032x}"


def many(stack: Deployment, count: int) -> list[str]:
    """Ids of new jobs, newest first."""
    made = [stack.created(["a"], f"s{n}") for n in range(count)]
    return sorted(made, reverse=True)


def page(stack: Deployment, **query: str) -> Any:
    answer = stack.call("GET", "/v1/jobs", query=query)
    assert answer.status == 200, answer
    return answer.body


def ids_of(body: Any) -> list[str]:
    return [each["id"] for each in body["jobs"]]


def token(content: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode()


def content_of(text: str) -> list[str]:
    content: list[str] = json.loads(base64.urlsafe_b64decode(text))
    return content


def test_an_empty_list(stack: Deployment) -> None:
    assert page(stack) == {"jobs": []}


def test_newest_first_and_only_the_tenants_own(stack: Deployment) -> None:
    mine = many(stack, 3)
    stack.created(["a"], tenant="other")
    assert ids_of(page(stack)) == mine
    shown = stack.call("GET", f"/v1/jobs/{mine[0]}").body
    assert shown.pop("request")["ids"]  # C85: a list has no room for it
    assert page(stack)["jobs"][0] == shown


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_pages_hold_every_job_once(stack: Deployment, limit: int) -> None:
    mine = many(stack, 4)
    seen: list[str] = []
    query = {"limit": str(limit)}
    while True:
        body = page(stack, **query)
        assert len(body["jobs"]) <= limit
        seen += ids_of(body)
        if "next" not in body:
            break
        query["page"] = body["next"]
    assert seen == mine


def test_a_token_goes_on_where_it_stood_whatever_came_since(stack: Deployment) -> None:
    mine = many(stack, 4)
    first = page(stack, limit="2")
    newer = stack.created(["a"], "newer")
    for _ in range(2):
        assert ids_of(page(stack, limit="2", page=first["next"])) == mine[2:]
    assert ids_of(page(stack))[0] == newer


@pytest.mark.parametrize(
    "limit", ["0", "-1", "201", "1.0", "1e2", "", " 1", "+1", "²", "٣", "x", "9" * 5000, "0x1"]
)
def test_a_bad_limit_is_named(stack: Deployment, limit: str) -> None:
    answer = stack.call("GET", "/v1/jobs", query={"limit": limit})
    assert (answer.status, answer.body["field"]) == (400, "limit")


@pytest.mark.parametrize("limit", ["1", "200"])
def test_the_bounds_of_limit_are_allowed(stack: Deployment, limit: str) -> None:
    assert page(stack, limit=limit) == {"jobs": []}


NONSENSE = {
    "empty": "",
    "no base64": "*",
    "not ascii": "é",
    "no json": base64.urlsafe_b64encode(b"{").decode(),
    "no text": base64.urlsafe_b64encode(b"\xff\xfe\x00").decode(),
    "deep": base64.urlsafe_b64encode(b"[" * 100_000).decode(),
    "null": token(None),
    "list": token([1]),
    "nothing": token({}),
    "number": token(7),
}


@pytest.mark.parametrize("text", NONSENSE.values(), ids=NONSENSE.keys())
def test_what_is_no_token_is_named(stack: Deployment, text: str) -> None:
    answer = stack.call("GET", "/v1/jobs", query={"page": text})
    assert (answer.status, answer.body["field"]) == (400, "page")


@pytest.mark.parametrize("changed", [[JOB_ID], ["x" * 5000], [None], [], [7], [{}], [[]]])
def test_a_changed_token_is_refused(stack: Deployment, changed: list[object]) -> None:
    many(stack, 2)
    digest, _ = good = content_of(page(stack, limit="1")["next"])
    assert stack.call("GET", "/v1/jobs", query={"page": token(good)}).status == 200
    for content in ([digest, *changed], [*good, *changed], ["", *good[1:]], [None, *good[1:]]):
        if content != good:
            answer = stack.call("GET", "/v1/jobs", query={"page": token(content)})
            assert (answer.status, answer.body["field"]) == (400, "page")


@pytest.mark.parametrize("place", [[], ["x"], ["0" * 31], [7], [None], [JOB_ID, 1], ["JOB#1"]])
def test_a_well_made_token_that_leads_nowhere_is_refused(
    stack: Deployment, place: list[str | int | None]
) -> None:
    list_ = (TENANT, "jobs", *Wanted(frozenset(), None, None, {}, None, None).key())
    answer = stack.call("GET", "/v1/jobs", query={"page": page_tokens.token(list_, place)})
    assert (answer.status, answer.body["field"]) == (400, "page")


def test_another_tenants_token_is_refused(stack: Deployment) -> None:
    many(stack, 2)
    text = page(stack, limit="1")["next"]
    answer = stack.call("GET", "/v1/jobs", query={"page": text}, tenant="other")
    assert (answer.status, answer.body["field"]) == (400, "page")


FILTERS: dict[str, dict[str, str | list[str]]] = {
    "state": {"state": "QUEUED"},
    "states": {"state": ["QUEUED", "RUNNING"]},
    "operation": {"operation": "adjust_number"},
    "label": {"label": "team:a"},
    "created_after": {"created_after": "2020-01-01T00:00:00Z"},
    "created_before": {"created_before": "2100-01-01T00:00:00Z"},
}


@pytest.mark.parametrize("filter_", FILTERS.values(), ids=FILTERS.keys())
def test_a_token_goes_on_with_its_own_filters_only(
    stack: Deployment, filter_: dict[str, str | list[str]]
) -> None:
    made = [stack.created(["a"], f"s{n}", labels={"team": "a"}) for n in range(3)]
    first = stack.call("GET", "/v1/jobs", query={**filter_, "limit": "2"}).body
    rest = stack.call("GET", "/v1/jobs", query={**filter_, "page": first["next"]}).body
    assert ids_of(first) + ids_of(rest) == sorted(made, reverse=True)
    for other in ({}, {"state": "FAILED"}, {**filter_, "label": "team:b"}):
        answer = stack.call("GET", "/v1/jobs", query={**other, "page": first["next"]})
        assert (answer.status, answer.body["field"]) == (400, "page")


def test_filters_show_what_they_say(stack: Deployment) -> None:
    ids = stack.fill(1)
    done = stack.created(ids, "one", labels={"team": "a", "why": "x:y"})
    stack.run()
    waiting = stack.created(ids, "two", labels={"team": "b"}, params={"field": "price", "add": 2})

    def listed(**query: str | list[str]) -> list[str]:
        return ids_of(stack.call("GET", "/v1/jobs", query=query).body)

    assert listed(state="SUCCEEDED") == [done]
    assert listed(state="QUEUED") == [waiting]
    assert listed(state=["QUEUED", "SUCCEEDED"]) == [waiting, done]
    assert listed(state="FAILED") == []
    assert listed(operation="adjust_number") == [waiting, done]
    assert listed(operation="reindex") == []
    assert listed(label="team:a") == listed(label=["team:a", "why:x:y"]) == [done]
    assert listed(label=["team:a", "why:z"]) == listed(label="team:") == []


def test_the_bounds_of_time_are_exact(stack: Deployment) -> None:
    made = sorted(stack.created(["a"], f"s{n}") for n in range(3))
    at = stack.call("GET", f"/v1/jobs/{made[1]}").body["created_at"]
    # Several may have come in one millisecond.
    created = {id_: stack.job(id_).created_at for id_ in made}
    since = [id_ for id_ in made if created[id_] >= created[made[1]]]
    before = [id_ for id_ in made if created[id_] < created[made[1]]]
    query = {"created_after": at}
    assert ids_of(stack.call("GET", "/v1/jobs", query=query).body) == since[::-1]
    query = {"created_before": at.replace("Z", "+00:00")}
    assert ids_of(stack.call("GET", "/v1/jobs", query=query).body) == before[::-1]


def test_a_filter_that_matches_little_ends_a_page_early_and_goes_on(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_list, "READ", 1)
    monkeypatch.setattr(job_list, "MOST_LOOKED_AT", 5)
    wanted = stack.created(["a"], "wanted", labels={"team": "a"})
    many(stack, 12)
    query = {"label": "team:a", "limit": "1"}
    pages = 0
    with stack.counted() as calls:
        body = page(stack, **query)
    assert (body["jobs"], len(calls)) == ([], 5)
    while "next" in body and not body["jobs"]:
        body, pages = page(stack, **query, page=body["next"]), pages + 1
    assert (ids_of(body), pages) == ([wanted], 2)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "queued"),
        ("state", ""),
        ("state", ["QUEUED", "x"]),
        ("label", "team"),
        ("label", ":a"),
        ("operation", ["a", "b"]),
        ("created_after", "yesterday"),
        ("created_after", "2026-01-01"),
        ("created_after", "2026-01-01T00:00:00"),
        ("created_after", "2026-01-31T24:00:00Z"),  # a time to Python 3.14
        ("created_after", "20260131T24+01:00"),
        ("created_before", "9999999999999"),
        ("created_before", ""),
        ("limit", ["1", "2"]),
        ("tenant", "other"),
        ("x" * 5000, "1"),
        ("é", "1"),
    ],
)
def test_a_bad_parameter_is_named(stack: Deployment, name: str, value: str | list[str]) -> None:
    with stack.counted() as calls:
        answer = stack.call("GET", "/v1/jobs", query={name: value})
    assert (answer.status, answer.body["field"], calls) == (400, name[:100], [])


@pytest.mark.parametrize(
    "at",
    [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2026-W24-1T00:00Z",
        "2026-01-24T00:00Z",
        "2026W05T00:24Z",
    ],
)
def test_the_ends_of_time_are_times(stack: Deployment, at: str) -> None:
    stack.created(["a"])
    for name in ("created_after", "created_before"):
        assert stack.call("GET", "/v1/jobs", query={name: at}).status == 200


# --- by subject -------------------------------------------------------------------------------


def test_c92_jobs_are_found_by_subject(stack: Deployment) -> None:
    mine = stack.created(["a"], "mine")
    stack.created(["a"], "other")
    stack.call("POST", f"/v1/jobs/{mine}/cancel")
    again = stack.created(["a"], "mine")
    assert ids_of(page(stack, subject="mine")) == [again, mine]
    assert ids_of(page(stack, subject="mine", state="QUEUED")) == [again]
    assert ids_of(page(stack, subject="none")) == []


def test_c92_the_holder_of_a_subject_is_found_in_two_reads(stack: Deployment) -> None:
    def asked(name: str, **call: Any) -> Any:
        return stack.call("GET", "/v1/subjects", query={"name": name}, **call)

    name = "a/b c#ä"
    assert asked(name).body == {"subject": name}
    id_ = stack.created(["a"], name)
    with stack.counted() as calls:
        held = asked(name).body
    assert len(calls) == 2
    shown = stack.call("GET", f"/v1/jobs/{id_}").body
    assert held == {
        "subject": name,
        "holder": {"id": id_, "state": "QUEUED", "url": shown["url"]},
        "since": shown["created_at"],
    }
    begun = begin_attempt(stack.world, stack.job(id_), worker="w", receipt="r", expired=None)
    execute(stack.world, begun.transaction)
    assert asked(name).body["holder"]["state"] == "RUNNING"
    assert asked(name).body["until"] > shown["created_at"]
    assert asked(name, tenant="other").body == {"subject": name}
    other = stack.created(["a"], "done")
    stack.call("POST", f"/v1/jobs/{other}/cancel")
    assert asked("done").body == {"subject": "done"}


@pytest.mark.parametrize("name", [None, "", "x" * 257, "a\x00b", ["a", "b"]])
def test_c92_a_bad_subject_is_named(stack: Deployment, name: Any) -> None:
    answer = stack.call("GET", "/v1/subjects", query={} if name is None else {"name": name})
    assert (answer.status, answer.body["field"]) == (400, "name")

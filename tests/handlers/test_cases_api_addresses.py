"""Addresses in answers lead back into the API, whichever way the request came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin, urlsplit

import pytest

from handlers.web.addresses import base_path, route_path
from tests.handlers.deployment import job

if TYPE_CHECKING:
    from tests.handlers.deployment import Answer, Deployment


@dataclass(frozen=True)
class Front:
    """What API Gateway makes of an address. See the events that the kinds of domains get."""

    address: str
    """Of the API, as a client knows it."""
    left: str = ""
    """What it leaves before the route in the event's ``path``."""

    def call(self, stack: Deployment, method: str, url: str, **call: Any) -> Answer:
        """url: absolute."""
        assert url.startswith(self.address + "/"), f"{url} leads out of {self.address}"
        route = url.removeprefix(self.address)
        base = urlsplit(self.address).path
        return stack.call(method, route, base=base, left=self.left, **call)


FRONTS: Final = {
    "stage": Front("https://abcdef1234.execute-api.eu-west-1.amazonaws.com/live"),
    "a stage named like the route": Front("https://abcdef1234.execute-api.x.amazonaws.com/v1"),
    "domain": Front("https://jobs.example.com"),
    "domain with a base path": Front("https://example.com/bulk", "/bulk"),
    "domain with a long base path": Front("https://example.com/v1/jobs/bulk", "/v1/jobs/bulk"),
    "domain without a stage": Front("https://example.com/live", "/live"),
}


@pytest.fixture(params=FRONTS, ids=lambda name: name.replace(" ", "_"))
def front(request: pytest.FixtureRequest) -> Front:
    return FRONTS[request.param]


def leads_to(stack: Deployment, front: Front, requested: str, answer: Answer, id_: str) -> None:
    """Both addresses, resolved as RFC 9110 says, lead to the job."""
    found = {answer.body["url"], answer.headers.get("location", answer.body["url"])}
    [where] = {urljoin(requested, reference) for reference in found}
    again = front.call(stack, "GET", where)
    assert (again.status, again.body["id"]) == (200, id_)
    assert urljoin(where, again.body["url"]) == where


def test_c88_a_created_job_is_where_its_answers_say(stack: Deployment, front: Front) -> None:
    jobs = f"{front.address}/v1/jobs"
    ids = stack.fill(1)
    made = front.call(stack, "POST", jobs, body=job(ids), headers={"Idempotency-Key": "k"})
    id_ = made.body["id"]
    leads_to(stack, front, jobs, made, id_)
    busy = front.call(stack, "POST", jobs, body=job(ids))
    assert busy.status == 409
    assert front.call(stack, "GET", urljoin(jobs, busy.body["active_job"]["url"])).status == 200
    query = {"on_conflict": "return_existing"}
    leads_to(stack, front, jobs, front.call(stack, "POST", jobs, body=job(ids), query=query), id_)
    [listed] = front.call(stack, "GET", jobs).body["jobs"]
    assert urljoin(jobs, listed["url"]) == urljoin(jobs, made.body["url"])
    for verb in ("pause", "resume", "cancel", "cancel"):
        url = f"{jobs}/{id_}/{verb}"
        leads_to(stack, front, url, front.call(stack, "POST", url), id_)


def test_c88_a_repeated_request_gets_the_address_of_its_own_way(
    stack: Deployment, front: Front
) -> None:
    """What is remembered of the first answer is not where it was asked for."""
    headers = {"Idempotency-Key": "k"}
    first = stack.call("POST", "/v1/jobs", job(["a"]), headers=headers)
    jobs = f"{front.address}/v1/jobs"
    again = front.call(stack, "POST", jobs, body=job(["a"]), headers=headers)
    assert again.headers["idempotency-replayed"] == "true"
    leads_to(stack, front, jobs, again, first.body["id"])


def test_c88_a_job_over_failed_records_is_where_its_answers_say(
    stack: Deployment, front: Front
) -> None:
    old = stack.created(stack.fill(1), params={"field": "no", "add": 1})
    stack.run()
    url = f"{front.address}/v1/jobs/{old}/retry"
    made = front.call(stack, "POST", url, query={"failed_only": "true"})
    assert made.body["id"] != old
    leads_to(stack, front, url, made, made.body["id"])


@pytest.mark.parametrize(
    ("path", "requested", "proxy", "base", "route"),
    [
        ("/v1/jobs/", "/live/v1/jobs/", "v1/jobs", "/live", "/v1/jobs/"),
        ("/b/v1/a%20b", "/b/v1/a%20b", "v1/a b", "/b", "/v1/a%20b"),
        ("/v1/a%2Fb", "/live/v1/a%2Fb", "v1/a%2Fb", "/live", "/v1/a%2Fb"),
        ("/v1/jobs", "/live/v1/jobs", None, "/live", "/v1/jobs"),
        ("/", "/live/", None, "/live", "/"),
        ("/v1/jobs", None, "v1/jobs", "", "/v1/jobs"),
        ("/v1/jobs", "/elsewhere", "v1/jobs", "", "/v1/jobs"),
    ],
)
def test_c88_stage_and_base_path_are_told_from_the_route(
    path: str, requested: str | None, proxy: str | None, base: str, route: str
) -> None:
    event = {
        "path": path,
        "pathParameters": None if proxy is None else {"proxy": proxy},
        "requestContext": {} if requested is None else {"path": requested},
    }
    assert (base_path(event), route_path(event)) == (base, route)

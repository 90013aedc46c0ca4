"""A function behind ministack's API Gateway learns which path its client requested."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import pytest
from ministack.services import apigateway_v1  # type: ignore[import-untyped]  # it has no types

from handlers.web.addresses import base_path, location, route_path
from scripts.local.requested import noted, told

# ministack's own code asks for the time in a way that Python will drop.
pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcnow:DeprecationWarning")

LOCAL: Final = "/_aws/execute-api/b2ad2909/live"


def event(route: str) -> dict[str, Any]:
    """Made by ministack's own code."""
    return told(apigateway_v1._build_lambda_event_v1)(
        "b2ad2909",
        "live",
        {},
        {"id": "r", "path": "/{proxy+}"},
        route,
        "GET",
        {},
        b"",
        {},
        {"proxy": route.strip("/")},
    )


@noted
async def serve(host: str, path: str, route: str) -> dict[str, Any]:
    await asyncio.sleep(0)  # others come between
    return event(route)


@pytest.mark.parametrize("base", [LOCAL, "/live", "/restapis/b2ad2909/live/_user_request_", ""])
def test_addresses_begin_with_what_the_client_requested(base: str) -> None:
    made = asyncio.run(serve("127.0.0.1:4566", f"{base}/v1/jobs", "/v1/jobs"))
    assert (base_path(made), route_path(made)) == (base, "/v1/jobs")
    assert location("j", base_path(made)) == f"{base}/v1/jobs/j"


def test_requests_that_are_served_at_the_same_time_keep_their_own_path() -> None:
    async def both() -> list[dict[str, Any]]:
        asked = [serve("h", f"{base}/v1/{base[-1]}", f"/v1/{base[-1]}") for base in ("/a", "/b")]
        return await asyncio.gather(*asked)

    assert [base_path(made) for made in asyncio.run(both())] == ["/a", "/b"]


def test_an_event_without_a_request_is_as_it_was() -> None:
    asyncio.run(serve("h", f"{LOCAL}/v1/jobs", "/v1/jobs"))
    assert event("/v1/jobs")["requestContext"]["path"] == "/live/v1/jobs"

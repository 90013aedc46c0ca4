"""Which addresses a request may name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.jobs.lifecycle.submit import submit
from handlers.jobs.selection.preview import preview
from handlers.jobs.selection.request import BadRequest, Unprocessable
from tests.support.jobs import TENANT
from tests.support.listeners import HOOK, new_job, wanted, world_of

GOOD = ["https://example.org", "https://example.org:8443/a?b=c", "https://93.184.216.34/x"]
PRIVATE = [
    "https://10.0.0.1/",
    "https://127.0.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://[::1]/",
    "https://[fd00::1]/",
    "https://[::ffff:10.0.0.1]/",
    "https://localhost/",
    "https://LOCALHOST./",
    "https://intranet/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://127.1/",
    "https://a.b.c.0x7f/",
    "http://example.org/",
]
MALFORMED = ["example.org", "ftp://a.org", "https://u:w@a.org", "https://", "x" * 3000]


@pytest.mark.parametrize("url", GOOD)
def test_public_addresses_are_taken(url: str) -> None:
    assert new_job(world_of(), notify={"url": url}).notify == url


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_refused_before_anything_is_made(url: str) -> None:
    world = world_of()
    before = world.store.snapshot()
    with pytest.raises(Unprocessable) as refused:
        submit(world, TENANT, wanted(world, notify={"url": url}))
    assert refused.value.field == "notify.url"
    with pytest.raises(Unprocessable):
        preview(world, TENANT, wanted(world, notify={"url": url}))
    assert world.store.snapshot() == before


@pytest.mark.parametrize("url", MALFORMED)
def test_what_is_no_address_is_a_bad_request(url: str) -> None:
    with pytest.raises(BadRequest) as refused:
        wanted(world_of(), notify={"url": url})
    assert refused.value.field == "notify.url"


def test_a_deployment_that_tells_no_addresses_says_so() -> None:
    world = replace(world_of(), address_problem=None)
    with pytest.raises(Unprocessable, match="sends no events of jobs to addresses"):
        submit(world, TENANT, wanted(world, notify={"url": HOOK}))

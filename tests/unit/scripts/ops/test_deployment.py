"""A tool that looks at several deployments one after another sees each as it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from handlers.jobs.words.job import Lane
from handlers.settings import WorkSettings
from infra.settings import PRODUCTION_TIMING
from scripts.ops.deployment import world_of


@pytest.fixture(autouse=True)
def _environment() -> Iterator[None]:
    """What a deployment puts into the environment goes with the test."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


def variables(name: str, **more: Any) -> dict[str, str]:
    return WorkSettings(
        control_table=f"{name}-control",
        records_table=f"{name}-records",
        idempotency_table=f"{name}-idempotency",
        payload_bucket=f"{name}-payloads",
        small_queue_url=f"http://127.0.0.1/{name}-small",
        bulk_queue_url=f"http://127.0.0.1/{name}-bulk",
        timing=PRODUCTION_TIMING,
        **more,
    ).to_env()


def test_the_second_stack_is_asked_at_its_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for number, name in enumerate(("first", "second"), 1):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{number}")
        made.append(world_of(variables(name)))
    for number, (settings, world) in enumerate(made, 1):
        clients = (world.store._client, world.queues[Lane.BULK]._client)  # type: ignore[attr-defined]  # DynamoDB's, and SQS's
        addresses = {client.meta.endpoint_url for client in clients}
        assert addresses == {f"http://127.0.0.1:{number}"}
        assert settings.control_table == ("first-control", "second-control")[number - 1]


def test_what_only_the_first_stack_had_is_not_in_the_seconds_environment() -> None:
    _, first = world_of(variables("first", effects={"search_url": "http://127.0.0.1:9"}))
    _, second = world_of(variables("second"))
    assert (len(first.sinks), len(second.sinks)) == (1, 0)
    assert "FAIRLANE_EFFECTS_SEARCH_URL" not in os.environ

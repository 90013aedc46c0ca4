"""What infra writes is what the handlers read."""

from __future__ import annotations

import json
from typing import Any

from handlers.settings import AuthSettings, WorkSettings

from .environments import environments
from .synthesis import AUTH, Synthesised, settings_of


def as_strings(variables: dict[str, Any]) -> dict[str, str]:
    """With references written out, as something that stands for what AWS puts there."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in variables.items()
    }


def test_everything_that_runs_is_known(stack: Synthesised) -> None:
    assert sorted(name for name, _ in environments(stack)) == [
        "api",
        "authorizer",
        "bulk_worker",
        "recovery",
        "small_lane",
    ]


def test_the_authorizer_reads_the_auth_settings(stack: Synthesised) -> None:
    variables = dict(environments(stack))["authorizer"]
    assert AuthSettings.from_env(as_strings(variables)) == AuthSettings.model_validate(AUTH)


def test_everybody_else_reads_the_same_work_settings(stack: Synthesised) -> None:
    read = [
        WorkSettings.from_env(as_strings(variables))
        for name, variables in environments(stack)
        if name != "authorizer"
    ]
    assert len(read) == 4
    chosen = settings_of()
    for settings in read:
        assert settings == read[0]
        assert settings.timing == chosen.timing
        assert settings.limits == chosen.limits
        assert settings.bulk_slots == chosen.bulk_lane.slots
        assert "StorageControl" in settings.control_table
        assert "BulkQueue" in settings.bulk_queue_url
        assert "SmallQueue" in settings.small_queue_url


def test_records_may_be_a_table_that_exists(other: Synthesised) -> None:
    variables = dict(environments(other))["small_lane"]
    settings = WorkSettings.from_env(as_strings(variables))
    assert settings.records_table == "products"
    assert (settings.records_tenant_key, settings.records_id_key) == ("owner", "sku")
    assert len(other.of("DynamoDB::GlobalTable")) == 2


def test_nobody_switches_idempotency_off(stack: Synthesised) -> None:
    for name, variables in environments(stack):
        assert "POWERTOOLS_IDEMPOTENCY_DISABLED" not in variables, name
        assert variables["POWERTOOLS_SERVICE_NAME"] == "fairlane"


def test_a_function_ends_before_what_waits_for_it(stack: Synthesised) -> None:
    timeouts = {
        function["Handler"]: function["Timeout"]
        for function in stack.of("Lambda::Function").values()
    }
    assert timeouts["handlers.api.handler"] < 29
    assert timeouts["handlers.recovery.handler"] < 60
    assert timeouts["handlers.small_lane.handler"] == settings_of().timing.function_timeout

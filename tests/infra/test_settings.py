"""Every relation between settings: broken, it names both sides; at its edge, it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from handlers.settings import SettingsError
from infra.settings import DeploySettings

from .synthesis import ROOT, context_of, settings_of

BROKEN = [
    ({"timing": {"small": {"heartbeat": 31}}}, "small.heartbeat x 3 = 93", "small.lease_ttl = 90"),
    ({"timing": {"bulk": {"heartbeat": 41}}}, "bulk.heartbeat x 3 = 123", "bulk.lease_ttl = 120"),
    (
        {"timing": {"small": {"lease_ttl": 361}}},
        "small.lease_ttl = 361",
        "small.visibility = 360",
    ),
    ({"timing": {"bulk": {"lease_ttl": 301}}}, "bulk.lease_ttl = 301", "bulk.visibility = 300"),
    ({"timing": {"small": {"max_attempts": 4}}}, "small.max_attempts = 4", "the floor = 5"),
    (
        {"timing": {"small": {"max_receive_count": 5}}},
        "small.max_receive_count = 5",
        "small.max_attempts = 5",
    ),
    (
        {"timing": {"bulk": {"max_receive_count": 5}}},
        "bulk.max_receive_count = 5",
        "bulk.max_attempts = 5",
    ),
    (
        {"timing": {"bulk": {"dlq_retention": 345_600}}},
        "bulk.dlq_retention = 345600",
        "bulk.queue_retention = 345600",
    ),
    (
        {"timing": {"takeover_grace": 385}},
        "takeover_grace = 385",
        "small.visibility + heartbeat + clock_skew = 385",
    ),
    (
        {"timing": {"bulk": {"visibility": 390}}},
        "takeover_grace = 420",
        "bulk.visibility + heartbeat + clock_skew = 425",
    ),
    (
        {"timing": {"function_timeout": 61}},
        "small.visibility = 360",
        "6 x function_timeout = 366",
    ),
    ({"timing": {"stop_timeout": 30}}, "stop_timeout = 30", "longest_chunk = 30"),
    ({"timing": {"hang_after": 119}}, "hang_after = 119", "bulk.lease_ttl = 120"),
    ({"timing": {"small_reserve": 60}}, "small_reserve = 60", "function_timeout = 60"),
    (
        {"small_lane": {"reserved_concurrency": 99}},
        "small_lane.maximum_concurrency = 100",
        "small_lane.reserved_concurrency = 99",
    ),
    (
        {"small_lane": {"maximum_concurrency": 2, "reserved_concurrency": 4}},
        "small_lane.reserved_concurrency = 4",
        "the floor = 5",
    ),
    (
        {"small_lane": {"maximum_concurrency": 1}},
        "small_lane.maximum_concurrency = 1",
        "the floor = 2",
    ),
    (
        {"bulk_lane": {"min_tasks": 11}},
        "bulk_lane.min_tasks = 11",
        "bulk_lane.max_tasks = 10",
    ),
    ({"bulk_lane": {"memory": 1024}}, "bulk_lane.cpu x 2 = 2048", "bulk_lane.memory = 1024"),
    ({"bulk_lane": {"memory": 9216}}, "bulk_lane.memory = 9216", "bulk_lane.cpu x 8 = 8192"),
    ({"payload_days": 14}, "payload_days = 14", "dlq_retention in days = 14"),
]

AT_THE_EDGE: list[Mapping[str, Any]] = [
    {"timing": {"small": {"heartbeat": 30}, "bulk": {"heartbeat": 40}}},
    {"timing": {"bulk": {"lease_ttl": 300}}},
    {"timing": {"small": {"max_receive_count": 6}, "bulk": {"max_receive_count": 6}}},
    {"timing": {"bulk": {"dlq_retention": 345_601}}},
    {"timing": {"takeover_grace": 386}},
    {"timing": {"stop_timeout": 31}},
    {"timing": {"hang_after": 120}},
    {"small_lane": {"reserved_concurrency": 100}},
    {"small_lane": {"maximum_concurrency": 2, "reserved_concurrency": 5}},
    {"small_lane": {"maximum_concurrency": 1000, "reserved_concurrency": None}},
    {"bulk_lane": {"min_tasks": 10}},
    {"bulk_lane": {"memory": 8192}},
    {"payload_days": 15},
]


@pytest.mark.parametrize(("chosen", "left", "right"), BROKEN)
def test_a_broken_relation_names_both_settings_and_their_values(
    chosen: dict[str, Any], left: str, right: str
) -> None:
    with pytest.raises(SettingsError) as refusal:
        settings_of(**chosen)
    assert left in str(refusal.value)
    assert right in str(refusal.value)


@pytest.mark.parametrize("chosen", AT_THE_EDGE)
def test_a_relation_holds_up_to_its_edge(chosen: dict[str, Any]) -> None:
    settings_of(**chosen)


@pytest.mark.parametrize(("timeout", "visibility"), [(300, 120), (120, 120), (61, 365)])
def test_c03_a_function_that_may_outlive_its_message_fails_synthesis(
    timeout: int, visibility: int
) -> None:
    with pytest.raises(SettingsError, match=f"small.visibility = {visibility} must be at least"):
        settings_of(timing={"function_timeout": timeout, "small": {"visibility": visibility}})


@pytest.mark.parametrize(("heartbeat", "visibility", "lease"), [(60, 60, 60), (20, 60, 90)])
def test_c03_a_worker_that_may_outlive_its_lease_fails_synthesis(
    heartbeat: int, visibility: int, lease: int
) -> None:
    # The design also wants the lease within the visibility timeout, so (20, 60, 90) is refused.
    lane = {"heartbeat": heartbeat, "visibility": visibility, "lease_ttl": lease}
    with pytest.raises(SettingsError, match=r"bulk\.lease_ttl = "):
        settings_of(timing={"bulk": lane})


def test_c03_sound_pairs_pass() -> None:
    settings_of(
        timing={
            "function_timeout": 60,
            "small": {"visibility": 360},
            "bulk": {"heartbeat": 20, "visibility": 90, "lease_ttl": 60},
        }
    )


def test_a_context_changes_only_what_it_names() -> None:
    settings = settings_of(timing={"small": {"heartbeat": 10}}, bulk_lane={"slots": 4})
    assert settings.timing.small.heartbeat == 10
    assert settings.bulk_lane.slots == 4
    default = settings_of()
    assert settings.timing.small.lease_ttl == default.timing.small.lease_ttl
    assert settings.bulk_lane.cpu == default.bulk_lane.cpu


def test_a_context_may_be_a_json_string() -> None:
    assert DeploySettings.read(json.dumps(context_of()["fairlane"])) == settings_of()


@pytest.mark.parametrize(
    ("chosen", "name"),
    [
        ({"small_lane": {"concurency": 7}}, "small_lane.concurency"),
        ({"timing": {"small": {"visibilty": 7}}}, "timing.small.visibilty"),
        ({"architecture": "sparc"}, "architecture"),
        ({"alarm_topic_arn": "topic"}, "alarm_topic_arn"),
    ],
)
def test_an_unknown_setting_or_value_is_named(chosen: dict[str, Any], name: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        settings_of(**chosen)
    assert name in str(refusal.value)


def test_who_may_call_has_no_default() -> None:
    with pytest.raises(SettingsError, match="set either auth"):
        DeploySettings.read(None)


def test_the_app_stops_at_a_broken_relation() -> None:
    context = context_of(small_lane={"reserved_concurrency": 99})
    run = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env={**os.environ, "CDK_CONTEXT_JSON": json.dumps(context)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "small_lane.maximum_concurrency = 100 must be at most" in run.stderr
    assert "small_lane.reserved_concurrency = 99" in run.stderr

"""What a deployment costs: each part follows its setting and its load."""

from __future__ import annotations

import pytest

from infra.settings import DeploySettings
from scripts.ops.cost import Load, Row, estimate

QUIET = Load(0, 0, 1)
BUSY = Load(10_000, 10, 100_000)


def settings_of(**chosen: object) -> DeploySettings:
    auth = {
        "auth_jwks_url": "https://issuer.dev/keys",
        "auth_issuer": "https://issuer.dev/",
        "auth_audience": "fairlane",
    }
    topic = "arn:aws:sns:eu-west-1:123456789012:alarms"
    return DeploySettings.read({"auth": auth, "alarm_topic_arn": topic, **chosen})


def parts(settings: DeploySettings, load: Load = QUIET) -> dict[str, Row]:
    return {row.part: row for row in estimate(settings, load)}


def idle(settings: DeploySettings) -> float:
    return sum(row.idle for row in estimate(settings, QUIET))


def test_the_endpoints_are_what_an_idle_production_pays_most_for() -> None:
    rows = estimate(settings_of(), QUIET)
    assert rows[0].part == "private endpoints"
    assert rows[0].idle == pytest.approx(73)
    assert 100 < idle(settings_of()) < 200


def test_development_costs_a_small_part_of_it() -> None:
    assert idle(DeploySettings.read({"profile": "dev"})) < idle(settings_of()) / 5


def test_nothing_is_added_without_a_job() -> None:
    assert sum(row.load for row in estimate(settings_of(), QUIET)) == 0


@pytest.mark.parametrize(
    ("chosen", "part", "factor"),
    [
        ({"bulk_lane": {"zones": 1}}, "private endpoints", 0.5),
        ({"bulk_lane": {"min_tasks": 2}}, "bulk workers", 2),
        ({"bulk_lane": {"spot_percent": 100}}, "bulk workers", 0.3),
        ({"small_lane": {"provisioned_concurrency": 6}}, "warm functions", 3),
        ({"small_lane": {"memory": 2048}}, "warm functions", 2),
    ],
)
def test_a_part_follows_its_setting(chosen: dict[str, object], part: str, factor: float) -> None:
    before, after = parts(settings_of())[part], parts(settings_of(**chosen))[part]
    assert after.idle == pytest.approx(before.idle * factor)


@pytest.mark.parametrize(
    ("chosen", "gone"),
    [
        ({"waf": {"mode": "off"}}, "web ACL"),
        ({"bulk_lane": {"network": "nat"}}, "private endpoints"),
        ({"small_lane": {"provisioned_concurrency": 0}}, "warm functions"),
    ],
)
def test_what_is_not_deployed_is_not_paid_for(chosen: dict[str, object], gone: str) -> None:
    assert gone in parts(settings_of())
    assert gone not in parts(settings_of(**chosen))


def test_twice_the_jobs_write_twice_as_much() -> None:
    once = parts(settings_of(), BUSY)["tables"].load
    twice = parts(settings_of(), Load(20_000, 20, 100_000))["tables"].load
    assert twice == pytest.approx(2 * once)


def test_busy_hours_are_paid_above_those_of_the_idle_tasks() -> None:
    settings = settings_of(bulk_lane={"min_tasks": 0})
    some = parts(settings, BUSY)["bulk workers"]
    assert (some.idle, some.load > 0) == (0, True)
    assert parts(settings_of(), BUSY)["bulk workers"].load == 0

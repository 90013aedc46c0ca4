"""What a deployment with places outside has more, and how far it reaches."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from pydantic import ValidationError

from handlers.settings import EffectSettings, SettingsError
from infra.parts import DeployEffects
from tests.infra.grants import DOMAIN, NAT, ROLES, SEARCH, rights, statements
from tests.infra.rules import app_with_rules, report
from tests.infra.synthesis import Synthesised, settings_of, synthesise

HOOK: Final = {"webhook_url": "https://hook.example", "webhook_secret_parameter": "/hook/secret"}


@pytest.fixture(scope="module")
def outside() -> Synthesised:
    effects = {**SEARCH, **HOOK, "search_index": "goods", "event_bus": "changes"}
    return synthesise(settings_of(effects=effects, bulk_lane=NAT))


@pytest.mark.parametrize("who", ["SmallLane", "BulkLane", "Recovery"])
def test_whoever_runs_effects_may_call_these_places_and_no_others(
    outside: Synthesised, who: str
) -> None:
    assert rights(outside, who, "es:") == [
        ("es:ESHttpPost", [f"{DOMAIN}/goods/_bulk", f"{DOMAIN}/goods/_mget"]),
        ("es:ESHttpGet", f"{DOMAIN}/goods/_mapping"),
    ]
    [(_, parameter)] = rights(outside, who, "ssm:")
    assert parameter["Fn::Join"][1][-1] == ":parameter/hook/secret"
    [(_, bus)] = rights(outside, who, "events:")
    assert bus["Fn::Join"][1][-1] == ":event-bus/changes"


def test_the_api_may_only_tell_the_bus_of_jobs(outside: Synthesised) -> None:
    for service in ("es:", "ssm:", "secretsmanager:"):
        assert not rights(outside, "Api", service)
    [(action, bus)] = rights(outside, "Api", "events:")
    assert action == "events:PutEvents"
    assert bus["Fn::Join"][1][-1] == ":event-bus/changes"


def test_only_recovery_signs_what_goes_to_addresses_of_requests() -> None:
    effects = {"notify": True, "webhook_secret_parameter": "/hook/secret"}
    made = synthesise(settings_of(effects=effects))
    assert len(rights(made, "Recovery", "ssm:")) == 1
    for who in ("Api", "SmallLane", "BulkLane"):
        assert not rights(made, who, "ssm:")
    for who in ROLES:
        assert not rights(made, who, "events:")


def test_recovery_reads_records_where_it_runs_effects_on_them(
    outside: Synthesised, stack: Synthesised
) -> None:
    def reads(template: Synthesised) -> bool:
        given = statements(template, ROLES["Recovery"])
        return any("dynamodb:BatchGetItem" in statement["Action"] for statement in given)

    assert reads(outside)
    assert not reads(stack)


@pytest.mark.parametrize("part", ["SmallLaneFunction", "RecoveryFunction"])
def test_functions_are_told(outside: Synthesised, part: str) -> None:
    variables = outside.properties("Lambda::Function", part)["Environment"]["Variables"]
    assert variables["FAIRLANE_EFFECTS_SEARCH_URL"] == "https://search.example"
    assert variables["FAIRLANE_EFFECTS_SEARCH_INDEX"] == "goods"
    assert variables["FAIRLANE_EFFECTS_WEBHOOK_SECRET_PARAMETER"] == "/hook/secret"
    assert not [name for name in variables if "DOMAIN" in name]


def test_a_bus_has_a_way_out_of_the_closed_network() -> None:
    closed = synthesise(settings_of(effects={"event_bus": "changes"}))
    services = [str(e["ServiceName"]) for e in closed.of("EC2::VPCEndpoint").values()]
    assert any(".events" in service for service in services)


def test_without_effects_there_is_no_such_endpoint(stack: Synthesised) -> None:
    services = [str(e["ServiceName"]) for e in stack.of("EC2::VPCEndpoint").values()]
    assert not any(".events" in service for service in services)


@pytest.mark.parametrize("lane", ["small", "bulk"])
@pytest.mark.parametrize("what", ["EffectsParked", "EffectsRefused", "EventsParked"])
def test_what_is_parked_or_refused_raises_an_alarm_in_both_lanes(
    stack: Synthesised, what: str, lane: str
) -> None:
    alarm = stack.properties("CloudWatch::Alarm", f"{lane.capitalize()}{what}")
    [part] = alarm["Metrics"]
    assert part["MetricStat"]["Metric"]["MetricName"] == what
    assert part["MetricStat"]["Metric"]["Dimensions"] == [{"Name": "lane", "Value": lane}]
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (0, "notBreaching")


@pytest.mark.parametrize("lane", ["small", "bulk"])
@pytest.mark.parametrize("what", ["EffectAge", "EventAge"])
def test_what_recovery_does_not_get_round_to_raises_an_alarm(
    stack: Synthesised, what: str, lane: str
) -> None:
    alarm = stack.properties("CloudWatch::Alarm", f"{lane.capitalize()}{what}")
    [part] = alarm["Metrics"]
    assert part["MetricStat"]["Metric"]["MetricName"] == what
    assert part["MetricStat"]["Stat"] == "Maximum"
    # Recovery comes by each minute: several runs in a row were too late.
    assert alarm["Threshold"] >= 60_000
    assert alarm["EvaluationPeriods"] > 1


@pytest.mark.parametrize("given", [SEARCH, HOOK])
def test_what_the_network_does_not_reach_stops_synthesis(given: dict[str, str]) -> None:
    said = r"cannot be reached with bulk_lane\.network = endpoints"
    with pytest.raises(SettingsError, match=said):
        settings_of(effects=given)


@pytest.mark.parametrize(
    "given", [{"search_url": "https://search.example"}, {"search_domain_arn": DOMAIN}]
)
def test_a_signed_address_needs_its_domain(given: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="an https search_url needs search_domain_arn"):
        DeployEffects.model_validate(given)


def test_local_places_need_nothing() -> None:
    local = {
        "search_url": "http://127.0.0.1:9200",
        "webhook_url": "http://127.0.0.1:1",
        "webhook_secret": "x" * 16,
        "webhook_loopback": True,
    }
    told = settings_of(local=True, effects=local).effects.told
    assert told == EffectSettings.model_validate(local)


def test_no_finding_is_open(tmp_path: Path) -> None:
    effects = {**SEARCH, **HOOK, "event_bus": "changes"}
    app, _ = app_with_rules(settings_of(effects=effects, bulk_lane=NAT), tmp_path)
    app.synth()
    for pack in ("AwsSolutions", "Serverless"):
        assert report(tmp_path, pack)["violations"] == []

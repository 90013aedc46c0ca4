"""What is refused before anything is synthesised: each refusal names the settings."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from string import ascii_lowercase
from typing import Any

import pytest

from handlers.jobs.words.exact_json import exact_json, exact_loads
from handlers.jobs.words.table import Table
from handlers.settings import SettingsError
from infra.relations import TABLE_IN_MEMORY
from infra.settings import DeploySettings

from .synthesis import AUTH, JOINED, settings_of

VPC: dict[str, Any] = {**JOINED["vpc"]}
HOOK = {"webhook_url": "https://hook.dev", "webhook_secret_parameter": "/hook"}
DIGEST = "sha256:" + "0" * 64

MIB = 1024**2

REFUSED = [
    ({"bulk_lane": {"image_uri": "ghcr.io/a/b:1"}}, ["bulk_lane.image_uri", "bulk_lane.network"]),
    (
        {
            "bulk_lane": {
                "image_uri": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/a:1",
                "network": "nat",
            }
        },
        ["bulk_lane.image_uri", "bulk_lane.repository"],
    ),
    (
        {
            "bulk_lane": {
                "image_uri": "a:1",
                "repository": {"name": "a", "tag": "1"},
                "network": "nat",
            }
        },
        ["bulk_lane.image_uri", "bulk_lane.repository"],
    ),
    ({"bulk_lane": {"repository": {"name": "a"}}}, ["bulk_lane.repository", "tag", "digest"]),
    (
        {"bulk_lane": {"repository": {"name": "a", "tag": "1", "digest": DIGEST}}},
        ["bulk_lane.repository", "tag", "digest"],
    ),
    ({"bulk_lane": {"network": "own"}}, ["bulk_lane.network = own", "vpc is not set"]),
    ({"vpc": VPC}, ["bulk_lane.network = endpoints", "vpc is set"]),
    (
        {
            "effects": {**JOINED["effects"], **HOOK, "webhook_secret_arn": None},
            "bulk_lane": {"network": "nat"},
        },
        ["effects.search_url", "bulk_lane.network = nat", "vpc.functions"],
    ),
    (
        {**JOINED, "vpc": {**VPC, "functions": False}},
        ["effects.search_url", "vpc.functions"],
    ),
    ({"records": {"key_arn": JOINED["key_arn"]}}, ["records.key_arn", "records.table_name"]),
    (
        {"effects": {"webhook_secret_key_arn": JOINED["key_arn"]}},
        ["webhook_secret_key_arn", "webhook_secret_parameter"],
    ),
    ({"alarm_topic_arn": None}, ["alarm_topic_arn", "profile = prod"]),
    (
        {"deletion_protection": True, "removal": "destroy"},
        ["deletion_protection = true", "removal = destroy"],
    ),
    (
        {"limits": {"upload_seconds": 43_201}},
        ["limits.upload_seconds = 43201", "session of a function's role in seconds = 43200"],
    ),
    ({"demo_tenant": "demo"}, ["auth", "principals", "demo_tenant"]),
    ({"state_stack": True, "local": True}, ["state_stack = true", "local = true"]),
    (
        {"limits": {"max_table_bytes": 32 * MIB}},
        ["limits.max_table_bytes = 33554432", "small_lane.memory = 1024", "= 9395240"],
    ),
    (
        {"bulk_lane": {"slots": 8}},
        ["limits.max_table_bytes = 4194304", "bulk_lane.memory = 2048", "bulk_lane.slots = 8"],
    ),
    (
        {"api": {"memory": 128}},
        ["limits.max_table_bytes = 4194304", "api.memory = 128", "room for = 0"],
    ),
    (
        {"profile": "dev", "limits": {"max_table_bytes": 2 * MIB}},
        ["limits.max_table_bytes = 2097152", "bulk_lane.memory = 512"],
    ),
]


@pytest.mark.parametrize(("chosen", "named"), REFUSED)
def test_c111_settings_that_contradict_each_other_are_refused_by_name(
    chosen: dict[str, Any], named: list[str]
) -> None:
    with pytest.raises(SettingsError) as refusal:
        settings_of(**chosen)
    for name in named:
        assert name in str(refusal.value)


ACCEPTED: list[dict[str, Any]] = [
    {"bulk_lane": {"image_uri": "ghcr.io/a/b:1", "network": "nat"}},
    {"bulk_lane": {"image_uri": "ghcr.io/a/b:1", "network": "public"}},
    {"bulk_lane": {"repository": {"name": "team/worker", "tag": "v1.2"}}},
    {"bulk_lane": {"network": "public"}, "effects": HOOK},
    JOINED,
    {"deletion_protection": True},
    {"limits": {"upload_seconds": 43_200}},
    {"profile": "dev", "alarm_topic_arn": None},
]


@pytest.mark.parametrize("chosen", ACCEPTED)
def test_what_fits_together_is_accepted(chosen: dict[str, Any]) -> None:
    settings_of(**chosen)


DEVELOPMENT = [
    ({"auth": {**AUTH, "auth_jwks_url": "http://localhost:1/keys"}}, "auth.auth_jwks_url"),
    ({"auth": {**AUTH, "auth_issuer": "https://issuer.example.com/"}}, "auth.auth_issuer"),
    (
        {"auth": {**AUTH, "auth_jwks_url": "https://issuer.example.com/.well-known/jwks.json"}},
        "auth.auth_jwks_url",
    ),
    (
        {
            "effects": {
                "webhook_url": "https://hook.dev",
                "webhook_secret": "x" * 16,
                "webhook_loopback": True,
            }
        },
        "effects.webhook_loopback, effects.webhook_secret",
    ),
    ({"effects": {"search_url": "http://127.0.0.1:9200"}}, "effects.search_url"),
]


@pytest.mark.parametrize(("chosen", "named"), DEVELOPMENT)
def test_c108_what_is_for_development_needs_local(chosen: dict[str, Any], named: str) -> None:
    with pytest.raises(SettingsError, match="local = true") as refusal:
        settings_of(**chosen)
    assert named in str(refusal.value)
    settings_of(local=True, **chosen)


def test_dev_starts_from_its_own_defaults_and_its_context_goes_over_them() -> None:
    plain = DeploySettings.read({"profile": "dev"})
    assert plain.demo_tenant == "demo"
    assert plain.removal == "purge"
    chosen = settings_of(profile="dev", bulk_lane={"max_tasks": 7}, removal="destroy")
    assert chosen.bulk_lane.max_tasks == 7
    assert chosen.bulk_lane.network == "public"
    assert chosen.removal == "destroy"
    assert chosen.demo_tenant is None


@pytest.mark.parametrize(
    ("largest", "chosen"),
    [
        (8 * MIB, {"bulk_lane": {"slots": 1}}),
        (32 * MIB, {"small_lane": {"memory": 3328}, "bulk_lane": {"memory": 7168}}),
        (19 * MIB, {"small_lane": {"memory": 2048}, "bulk_lane": {"slots": 1}}),
    ],
)
def test_a_lookup_table_as_large_as_the_memory_allows_is_accepted(
    largest: int, chosen: dict[str, Any]
) -> None:
    settings = settings_of(limits={"max_table_bytes": largest}, **chosen)
    assert settings.limits.max_table_bytes == largest
    with pytest.raises(SettingsError, match=r"limits\.max_table_bytes"):
        settings_of(limits={"max_table_bytes": largest + MIB}, **chosen)


def test_a_table_takes_no_more_memory_than_the_relation_counts() -> None:
    """Rows of many short numbers, whose names no two rows share an object of. 20 was too little."""
    names = [f"{a}{b}" for a in ascii_lowercase for b in ascii_lowercase][:345]
    cells = dict.fromkeys(names, Decimal("0.1"))
    stored = [exact_json([str(n), {"k": str(n), **cells}]).encode() for n in range(100)]
    tracemalloc.start()
    try:
        table = Table(dict(exact_loads(line) for line in stored))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(table) == 100
    assert 20 < taken / sum(map(len, stored)) <= TABLE_IN_MEMORY

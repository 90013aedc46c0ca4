"""The environment contract: what is written is what is read, and a bad variable is named."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.limits import MAX_CHUNK, Limits
from handlers.jobs.words.timing import LaneTiming, Timing
from handlers.settings import (
    PREFIX,
    AuthSettings,
    EffectSettings,
    Environment,
    SettingsError,
    WorkSettings,
)

TIMING = Timing(
    small=LaneTiming(heartbeat=10, lease_ttl=60, visibility=360),
    bulk=LaneTiming(heartbeat=20, lease_ttl=90, visibility=300),
    takeover_grace=600,
    function_timeout=60,
)
WORK = WorkSettings(
    control_table="control",
    records_table="records",
    idempotency_table="idempotency",
    payload_bucket="payloads",
    small_queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/small",
    bulk_queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/bulk",
    timing=TIMING,
)
AUTH = AuthSettings(
    auth_jwks_url="https://issuer.example/keys",
    auth_issuer="https://issuer.example",
    auth_audience="fairlane",
)

SECONDS = st.floats(min_value=0.001, max_value=100_000)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1)
"""What an environment variable can hold."""


@st.composite
def lane_timings(draw: st.DrawFn, floor: int) -> LaneTiming:
    """Lanes that keep the relations, with at least this visibility."""
    visibility = draw(st.integers(floor, 43_200))
    lease_ttl = draw(st.floats(0.5, visibility))
    attempts = draw(st.integers(5, 999))
    queue_retention = draw(st.integers(60, 1_209_599))
    return LaneTiming(
        visibility=visibility,
        lease_ttl=lease_ttl,
        heartbeat=draw(st.floats(0.01, lease_ttl / 3.1)),
        max_attempts=attempts,
        max_receive_count=draw(st.integers(attempts + 1, 1000)),
        queue_retention=queue_retention,
        dlq_retention=draw(st.integers(queue_retention + 1, 1_209_600)),
    )


@st.composite
def timings(draw: st.DrawFn) -> Timing:
    """Timings that keep the relations."""
    function_timeout = draw(st.integers(1, 900))
    stop_timeout = draw(st.integers(2, 120))
    skew = draw(st.floats(0, 100))
    return Timing(
        small=draw(lane_timings(floor=6 * function_timeout)),
        bulk=draw(lane_timings(floor=1)),
        takeover_grace=draw(st.floats(43_200 * 2 + skew, 200_000)),
        clock_skew=skew,
        function_timeout=function_timeout,
        stop_timeout=stop_timeout,
        longest_chunk=draw(st.floats(0.1, stop_timeout - 0.1)),
        small_reserve=draw(st.floats(0, function_timeout - 0.5)),
        dispatch_grace=draw(SECONDS),
        lost_after=draw(SECONDS),
        retry_base=draw(SECONDS),
        retry_cap=draw(SECONDS),
        hang_after=draw(st.floats(43_200, 100_000)),
        history=draw(st.integers(1, 10**9)),
    )


WORKS = st.builds(
    WorkSettings,
    control_table=TEXT,
    records_table=TEXT,
    records_tenant_key=TEXT,
    records_id_key=TEXT,
    idempotency_table=TEXT,
    payload_bucket=TEXT,
    small_queue_url=TEXT,
    bulk_queue_url=TEXT,
    due_shards=st.integers(1, 64),
    metrics_namespace=TEXT,
    timing=timings(),
    limits=st.builds(
        Limits,
        small_max_items=st.integers(1, 10**6),
        chunk_size=st.integers(1, MAX_CHUNK),
        max_inline_ids=st.integers(1, 10**6),
        tenant_slots_small=st.integers(1, 1000),
        tenant_slots_bulk=st.integers(1, 1000),
        recovery_slice=st.integers(1, 1000),
    ),
    effects=st.builds(
        EffectSettings,
        search_url=st.sampled_from([None, "https://a.example", "http://127.0.0.1:9200"]),
        search_index=TEXT,
        search_fields=st.dictionaries(
            st.sampled_from(["price", "name"]), st.sampled_from(["text", "number", "boolean"])
        ),
        event_bus=st.none() | TEXT,
    )
    | st.builds(
        EffectSettings,
        webhook_url=st.just("https://a.example/hook?x=1"),
        webhook_secret_arn=TEXT,
        webhook_loopback=st.booleans(),
    ),
    bulk_slots=st.integers(1, 64),
    bulk_poll_seconds=st.just(1),  # below any stop_timeout
)
AUTHS = st.builds(
    AuthSettings,
    auth_jwks_url=st.sampled_from(
        ["https://a.example/k", "http://127.0.0.1:8/k", "http://localhost/k", "http://[::1]:8/k"]
    ),
    auth_issuer=TEXT,
    auth_audience=TEXT,
    auth_tenant_claim=TEXT,
    auth_leeway=st.integers(0, 300),
)


@given(WORKS | AUTHS)
def test_what_is_written_is_what_is_read(settings: Environment) -> None:
    assert type(settings).from_env(settings.to_env()) == settings


@given(WORKS, AUTHS)
def test_both_share_one_environment(work: WorkSettings, auth: AuthSettings) -> None:
    env = {"PATH": "/bin", PREFIX + "SOMETHING": "else", **work.to_env(), **auth.to_env()}

    assert WorkSettings.from_env(env) == work
    assert AuthSettings.from_env(env) == auth


def leaves(values: dict[str, Any]) -> int:
    """That are set: None is left out."""
    return sum(
        leaves(value) if isinstance(value, dict) else value is not None for value in values.values()
    )


def test_every_leaf_has_a_variable_of_its_own() -> None:
    env = WORK.to_env() | AUTH.to_env()

    assert len(env) == leaves(WORK.model_dump(mode="json")) + leaves(AUTH.model_dump())
    assert env["FAIRLANE_TIMING_SMALL_HEARTBEAT"] == "10.0"
    assert env["FAIRLANE_CONTROL_TABLE"] == "control"
    for name in env:
        assert re.fullmatch(r"FAIRLANE_[A-Z][A-Z0-9_]*", name)


def test_what_has_a_default_may_be_missing() -> None:
    env = {name: value for name, value in WORK.to_env().items() if "LIMITS" not in name}

    assert WorkSettings.from_env(env) == WORK


@pytest.mark.parametrize(
    "name", ["FAIRLANE_CONTROL_TABLE", "FAIRLANE_SMALL_QUEUE_URL", "FAIRLANE_TIMING_BULK_LEASE_TTL"]
)
def test_a_missing_variable_is_named(name: str) -> None:
    env = WORK.to_env()
    del env[name]

    with pytest.raises(SettingsError, match=f"^{name}: Field required$"):
        WorkSettings.from_env(env)


def test_all_missing_variables_are_named_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        AuthSettings.from_env({})

    for name in ("AUTH_JWKS_URL", "AUTH_ISSUER", "AUTH_AUDIENCE"):
        assert f"{PREFIX}{name}: Field required" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONTROL_TABLE", ""),
        ("SMALL_QUEUE_URL", ""),
        ("DUE_SHARDS", "0"),
        ("DUE_SHARDS", "four"),
        ("BULK_SLOTS", "1.5"),
        ("TIMING_SMALL_HEARTBEAT", "0"),
        ("TIMING_SMALL_HEARTBEAT", "nan"),
        ("TIMING_TAKEOVER_GRACE", "inf"),
        ("TIMING_BULK_VISIBILITY", "43201"),
        ("TIMING_STOP_TIMEOUT", "121"),
        ("LIMITS_CHUNK_SIZE", str(MAX_CHUNK + 1)),
    ],
)
def test_a_bad_variable_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{PREFIX}{name}: "):
        WorkSettings.from_env(WORK.to_env() | {PREFIX + name: value})


@pytest.mark.parametrize(
    "url",
    [
        "",
        "issuer.example/keys",
        "http://issuer.example/keys",
        "http://127.0.0.1.evil.example/keys",
        "http://localhost.evil.example/keys",
        "http://127.0.0.1@evil.example/keys",
        "http://127.0.0.1:80@evil.example/keys",
        "ftp://issuer.example/keys",
        "file:///etc/keys",
        "https://",
    ],
)
def test_the_key_set_is_read_over_https_or_from_this_machine(url: str) -> None:
    with pytest.raises(SettingsError, match=f"^{PREFIX}AUTH_JWKS_URL: "):
        AuthSettings.from_env(AUTH.to_env() | {f"{PREFIX}AUTH_JWKS_URL": url})


def test_a_broken_relation_stops_the_start_with_both_values() -> None:
    env = WORK.to_env() | {f"{PREFIX}TIMING_SMALL_LEASE_TTL": "361"}

    with pytest.raises(SettingsError) as caught:
        WorkSettings.from_env(env)
    assert "small.lease_ttl = 361 must be at most small.visibility = 360" in str(caught.value)


def test_settings_made_in_code_are_checked_too() -> None:
    broken = TIMING.model_copy(update={"takeover_grace": 1.0})

    with pytest.raises(ValueError, match=r"takeover_grace = 1 must be greater than small\.visib"):
        WorkSettings(**{**WORK.model_dump(), "timing": broken})


def test_they_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        WORK.due_shards = 5  # type: ignore[misc]  # that it is refused is the point


def test_c82_a_rollout_outlasts_the_protection_of_an_older_worker() -> None:
    timing = WORK.timing.model_copy(update={"rollout": 900})
    broken = WORK.model_copy(update={"timing": timing, "bulk_protection_minutes": 15})
    with pytest.raises(SettingsError, match=r"rollout = 900 .* bulk_protection_minutes x 60 = 900"):
        WorkSettings.from_env(broken.to_env())
    for rollout, minutes in ((901, 15), (0, 120)):
        kept = {"timing": timing.model_copy(update={"rollout": rollout})}
        good = WORK.model_copy(update={**kept, "bulk_protection_minutes": minutes}).to_env()
        assert WorkSettings.from_env(good).timing.rollout == rollout


def test_a_worker_that_polls_past_its_stop_time_is_refused() -> None:
    settings = WORK
    timing = settings.timing.model_copy(update={"stop_timeout": 15, "longest_chunk": 5})
    env = settings.model_copy(update={"timing": timing, "bulk_poll_seconds": 15}).to_env()
    with pytest.raises(SettingsError, match=r"stop_timeout = 15 .* bulk_poll_seconds = 15"):
        WorkSettings.from_env(env)
    good = settings.model_copy(update={"timing": timing, "bulk_poll_seconds": 14}).to_env()
    assert WorkSettings.from_env(good).bulk_poll_seconds == 14

"""The message: a pointer that reads back, and a group any queue takes."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import (
    MESSAGE_VERSION,
    Message,
    Pointer,
    UnreadableMessage,
    group_of,
    read_pointer,
)

GOOD: dict[str, Any] = {"version": MESSAGE_VERSION, "job_id": "j1", "lane": "small"}


@given(st.text(min_size=1), st.sampled_from(Lane))
def test_what_is_sent_reads_back(job_id: str, lane: Lane) -> None:
    assert read_pointer(Message(job_id, lane, "group").body) == Pointer(job_id, lane)


def test_a_body_is_a_pointer_and_nothing_else() -> None:
    body = json.loads(Message("j1", Lane.BULK, "group").body)

    assert body == {"version": MESSAGE_VERSION, "job_id": "j1", "lane": "bulk"}


@given(st.text(min_size=1), st.sampled_from(Lane))
def test_a_body_is_plain_ascii(job_id: str, lane: Lane) -> None:
    assert re.fullmatch(r"[\x20-\x7e]+", Message(job_id, lane, "group").body)


def test_fields_of_a_later_minor_change_are_ignored() -> None:
    assert read_pointer(json.dumps({**GOOD, "more": 1})) == Pointer("j1", Lane.SMALL)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not an object"),
        ("null", "not an object"),
        ('"text"', "not an object"),
        ("{}", "version None, not 1"),
        (json.dumps({**GOOD, "version": 2}), "version 2, not 1"),
        (json.dumps({**GOOD, "version": "1"}), "version '1', not 1"),
        (json.dumps({**GOOD, "job_id": ""}), "no job_id"),
        (json.dumps({**GOOD, "job_id": 7}), "no job_id"),
        (json.dumps({"version": MESSAGE_VERSION, "lane": "small"}), "no job_id"),
        (json.dumps({**GOOD, "lane": "fast"}), "lane 'fast'"),
        (json.dumps({**GOOD, "lane": None}), "lane None"),
        (json.dumps({**GOOD, "lane": ["small"]}), "lane ['small']"),
    ],
)
def test_an_unreadable_body_says_why(body: str, reason: str) -> None:
    with pytest.raises(UnreadableMessage) as caught:
        read_pointer(body)

    assert str(caught.value) == reason


@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "x"]), inner),
    ).map(json.dumps)
)
def test_no_body_raises_anything_else(body: str) -> None:
    with suppress(UnreadableMessage):
        assert read_pointer(body).job_id


@given(st.text(st.characters(codec="utf-8")))
def test_a_group_is_valid_stable_and_does_not_show_the_tenant(tenant: str) -> None:
    group = group_of(tenant)

    assert re.fullmatch(r"[0-9a-f]{32}", group)
    assert group == group_of(tenant)


@given(st.lists(st.text(st.characters(codec="utf-8")), unique=True, max_size=20))
def test_tenants_do_not_share_a_group(tenants: list[str]) -> None:
    assert len({group_of(tenant) for tenant in tenants}) == len(tenants)


def test_the_group_of_a_tenant_is_pinned() -> None:
    # Messages in flight during a deployment would change their group otherwise.
    assert group_of("acme") == "8c80573494558b6cf7f0769c4f8d1604"

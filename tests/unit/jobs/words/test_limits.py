"""The size table: what fits is what is counted, and no layer behind the limit is ever too small."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.words.limits import (
    BODY_GROWTH,
    ENVELOPE_BYTES,
    EVENT_RESERVE_BYTES,
    GATEWAY_BODY_BYTES,
    GATEWAY_HEADERS,
    INLINE_ID_BYTES,
    ITEM_BYTES,
    LAMBDA_EVENT_BYTES,
    MAX_BODY_BYTES,
    MAX_ID_BYTES,
    MAX_PARAMS_BYTES,
    MAX_QUERY_BYTES,
    WAF_BODY_BYTES,
    Limits,
    body_bytes,
    ids_that_fit,
)


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_no_text_grows_more_on_its_way_than_the_table_says(text: str) -> None:
    escaped = len(json.dumps(text)) - 2
    assert escaped <= BODY_GROWTH * len(text.encode())


@pytest.mark.parametrize("letter", ["é", "あ", "😀", '"', "\\", "\n"])
def test_growth_is_no_more_than_it_has_to_be(letter: str) -> None:
    grown = len(json.dumps(letter)) - 2
    assert 2 * len(letter.encode()) <= grown <= BODY_GROWTH * len(letter.encode())


def test_the_largest_body_fits_everywhere_behind_the_limit() -> None:
    assert MAX_BODY_BYTES < WAF_BODY_BYTES
    assert WAF_BODY_BYTES * BODY_GROWTH + EVENT_RESERVE_BYTES <= LAMBDA_EVENT_BYTES
    assert EVENT_RESERVE_BYTES > 2 * 2 * GATEWAY_HEADERS
    assert MAX_BODY_BYTES < GATEWAY_BODY_BYTES


@given(st.integers(1, MAX_ID_BYTES), st.integers(20, 2000))
def test_as_many_ids_fit_as_are_counted_and_not_one_more(id_bytes: int, limit: int) -> None:
    def body(count: int) -> str:
        return json.dumps({"ids": ["x" * id_bytes] * count}, separators=(",", ":"))

    beside = len(body(0))
    count = ids_that_fit(id_bytes, beside=beside, limit=limit)
    assert count == 0 or body_bytes(body(count)) <= limit
    assert body_bytes(body(count + 1)) > limit


def test_the_cap_is_what_fits_of_uuids() -> None:
    assert Limits().max_inline_ids == 51_000
    used = 51_000 * len('"12345678-1234-1234-1234-123456789012",')
    assert MAX_BODY_BYTES - used >= ENVELOPE_BYTES
    assert MAX_BODY_BYTES - used - 1000 * 39 < ENVELOPE_BYTES


def test_half_a_surrogate_pair_is_measured_and_not_an_error() -> None:
    assert body_bytes("\ud800é") == 5


def test_an_item_with_every_part_at_its_limit_is_far_from_full() -> None:
    parts = INLINE_ID_BYTES + MAX_PARAMS_BYTES + MAX_QUERY_BYTES
    assert 2 * parts < ITEM_BYTES

"""The size table: what fits is what is counted, and no layer behind the limit is ever too small."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs import limits, sizes
from handlers.jobs.limits import Limits


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_no_text_grows_more_on_its_way_than_the_table_says(text: str) -> None:
    escaped = len(json.dumps(text)) - 2
    assert escaped <= sizes.GROWTH * len(text.encode())


@pytest.mark.parametrize("letter", ["é", "あ", "😀", '"', "\\", "\n"])
def test_growth_is_no_more_than_it_has_to_be(letter: str) -> None:
    grown = len(json.dumps(letter)) - 2
    assert 2 * len(letter.encode()) <= grown <= sizes.GROWTH * len(letter.encode())


def test_the_largest_body_fits_everywhere_behind_the_limit() -> None:
    assert sizes.BODY < sizes.BODY_AT_WAF
    assert sizes.BODY_AT_WAF * sizes.GROWTH + sizes.EVENT_RESERVE <= sizes.EVENT
    assert sizes.EVENT_RESERVE > 2 * 2 * sizes.GATEWAY_HEADERS
    assert sizes.BODY < sizes.GATEWAY_PAYLOAD


@given(st.integers(1, limits.MAX_ID_BYTES), st.integers(20, 2000))
def test_as_many_ids_fit_as_are_counted_and_not_one_more(id_bytes: int, limit: int) -> None:
    def body(count: int) -> str:
        return json.dumps({"ids": ["x" * id_bytes] * count}, separators=(",", ":"))

    beside = len(body(0))
    count = sizes.fitting(id_bytes, beside=beside, limit=limit)
    assert count == 0 or sizes.body_bytes(body(count)) <= limit
    assert sizes.body_bytes(body(count + 1)) > limit


def test_the_cap_is_what_fits_of_uuids() -> None:
    assert Limits().max_inline_ids == 51_000
    used = 51_000 * len('"12345678-1234-1234-1234-123456789012",')
    assert sizes.BODY - used >= sizes.ENVELOPE
    assert sizes.BODY - used - 1000 * 39 < sizes.ENVELOPE


def test_half_a_surrogate_pair_is_measured_and_not_an_error() -> None:
    assert sizes.body_bytes("\ud800é") == 5


def test_an_item_with_every_part_at_its_limit_is_far_from_full() -> None:
    parts = limits.INLINE_ID_BYTES + limits.MAX_PARAMS_BYTES + limits.MAX_QUERY_BYTES
    assert 2 * parts < sizes.ITEM

"""What a campaign does to one product."""

from __future__ import annotations

from decimal import Decimal

import pytest
from pydantic import ValidationError

from fairlane.operations import Fail, Fields, Skip
from fairlane.testing import tried
from shop_operations.change_price import change_price


@pytest.mark.parametrize(
    ("price", "percent", "expected"),
    [(10, "-10", "9"), ("7.5", "2.5", "7.69"), ("0.05", "-50", "0.02"), (3, "-100", "0")],
)
def test_a_price_is_changed_to_the_cent(price: str, percent: str, expected: str) -> None:
    done = tried(change_price, {"price": Decimal(price)}, percent=percent, campaign="spring")
    assert done.after == {"price": Decimal(expected), "campaign": "spring"}


def test_a_campaign_changes_a_price_once() -> None:
    product: Fields = {"price": 9, "campaign": "spring"}
    assert isinstance(tried(change_price, product, percent=-10, campaign="spring").outcome, Skip)
    assert tried(change_price, product, percent=-10, campaign="summer").after != product


@pytest.mark.parametrize("product", [{}, {"price": "9"}, {"price": True}])
def test_what_has_no_price_fails(product: Fields) -> None:
    assert isinstance(tried(change_price, product, percent=1, campaign="x").outcome, Fail)


def test_no_price_becomes_negative_and_no_name_is_mistyped() -> None:
    assert isinstance(tried(change_price, {"price": 1}, percent=-101, campaign="x").outcome, Fail)
    with pytest.raises(ValidationError, match="percents"):
        tried(change_price, {"price": 1}, percents=1, campaign="x")

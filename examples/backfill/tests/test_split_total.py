"""What the migration does to one invoice."""

from __future__ import annotations

from decimal import Decimal

import pytest

from backfill_operations.split_total import split_total
from fairlane.operations import Fail, Fields, Skip
from fairlane.testing import table, tried


@pytest.mark.parametrize(
    ("total", "amount", "currency"),
    [("12.50 EUR", "12.5", "EUR"), ("3USD", "3", "USD"), (" -0.05 JPY ", "-0.05", "JPY")],
)
def test_a_total_is_split_and_removed(total: str, amount: str, currency: str) -> None:
    done = tried(split_total, {"total": total, "note": "kept"})
    assert done.after == {"amount": Decimal(amount), "currency": currency, "note": "kept"}


def test_a_comma_is_for_a_person_to_decide() -> None:
    invoice = {"total": "12,50 EUR"}
    assert isinstance(tried(split_total, invoice).outcome, Fail)
    done = tried(split_total, invoice, decimal_comma=True)
    assert done.after == {"amount": Decimal("12.5"), "currency": "EUR"}


def test_a_total_without_a_currency_gets_that_of_its_customer() -> None:
    customers = table({"c-1": {"customer": "c-1", "currency": "EUR"}})
    done = tried(split_total, {"total": "12", "customer": "c-1"}, customers=customers)
    assert done.after == {"amount": 12, "currency": "EUR", "customer": "c-1"}
    for invoice in ({"total": "12", "customer": "c-2"}, {"total": "12"}):
        assert isinstance(tried(split_total, invoice, customers=customers).outcome, Fail)
    assert isinstance(tried(split_total, {"total": "12", "customer": "c-1"}).outcome, Fail)


@pytest.mark.parametrize("invoice", [{}, {"total": 12}, {"total": "unknown"}, {"total": "1 eur"}])
def test_what_is_no_total_fails(invoice: Fields) -> None:
    assert isinstance(tried(split_total, invoice).outcome, Fail)


def test_more_digits_than_a_record_can_hold_fail() -> None:
    assert isinstance(tried(split_total, {"total": f"{'1' * 39} EUR"}).outcome, Fail)


def test_an_invoice_is_split_once() -> None:
    done = tried(split_total, {"total": "12.50 EUR"}).after
    assert done is not None
    assert isinstance(tried(split_total, done).outcome, Skip)

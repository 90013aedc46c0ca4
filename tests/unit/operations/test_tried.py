"""What a test of an operation can ask for: ``fairlane.testing``."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Self

import pytest
from pydantic import ValidationError, model_validator

from fairlane.operations import (
    Change,
    Fail,
    Fields,
    Outcome,
    Parameters,
    Skip,
    Table,
    operation,
)
from fairlane.testing import OperationBroken, table, tried
from handlers.operations.adjust_number import adjust_number
from handlers.operations.delete_records import delete_records
from handlers.operations.reindex import reindex
from tests.support.own import forget


@pytest.fixture(autouse=True)
def only_for_this_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from forget(monkeypatch, "nothing")


def test_before_and_after_are_as_they_would_be_stored() -> None:
    done = tried(adjust_number, {"n": Decimal("10.0"), "kept": "x"}, field="n", multiply="1.5")
    assert done.before == {"n": 10, "kept": "x"}
    assert done.after == {"n": 15, "kept": "x"}
    assert done.outcome == Change({"n": 15})


def test_the_parameters_are_those_of_a_client() -> None:
    with pytest.raises(ValidationError, match="give at least one of"):
        tried(adjust_number, {"n": 1}, field="n")


def test_records_can_go_or_be_missing() -> None:
    assert tried(delete_records, {"n": 1}).after is None
    assert tried(delete_records, {}, missing=True).outcome == Skip("no such record")
    assert tried(reindex, {"n": 1}).after == {"n": 1}


def declare(apply: Any) -> Any:
    apply.__doc__ = "Made for a test."
    return operation("made", Parameters, writes=lambda _: frozenset({"n"}))(apply)


def test_what_cannot_be_stored_fails_as_in_a_job() -> None:
    made = declare(lambda record, parameters: Change({"n": 0.5}))  # type: ignore[dict-item]
    done = tried(made, {"n": 1})
    assert isinstance(done.outcome, Fail)
    assert "float" in done.outcome.reason
    assert done.after == {"n": 1}


def test_an_exception_is_the_records_failure() -> None:
    made = declare(lambda record, parameters: record["gone"])
    assert tried(made, {"n": 1}).outcome == Fail("KeyError: 'gone'")


def test_an_operation_may_not_change_what_it_is_given() -> None:
    def greedy(record: Fields, parameters: Parameters) -> Outcome:
        record["list"].append(1)  # type: ignore[union-attr]  # the point
        return Skip("done")

    with pytest.raises(OperationBroken, match="changed the record"):
        tried(declare(greedy), {"list": []})


def test_an_operation_has_to_answer_the_same_again() -> None:
    answers = iter([Skip("one"), Skip("two")])
    with pytest.raises(OperationBroken, match="pure function"):
        tried(declare(lambda record, parameters: next(answers)), {})


@pytest.mark.parametrize(("name", "what"), [("m", "does not name"), ("version", "are Fairlane's")])
def test_an_operation_may_write_only_what_it_declares(name: str, what: str) -> None:
    made = declare(lambda record, parameters: Change({name: 1}))
    with pytest.raises(OperationBroken, match=what):
        tried(made, {})


def test_a_function_that_is_no_operation_is_refused() -> None:
    with pytest.raises(LookupError, match="not decorated"):
        tried(lambda record, parameters: Skip("x"), {})


class WithTables(Parameters):
    rates: Table
    more: tuple[Table, ...] = ()


def converted(record: Fields, parameters: WithTables) -> Outcome:
    """Made for a test."""
    row = parameters.rates[str(record["currency"])]
    return Change({"rate": row["rate"], "more": len(parameters.more)})


def test_a_lookup_table_is_given_as_its_rows() -> None:
    made = operation("made", WithTables, writes=lambda _: frozenset({"rate", "more"}))(converted)
    rates = table({"EUR": {"rate": 2}})
    done = tried(made, {"currency": "EUR"}, rates=rates, more=[rates, rates])
    assert done.after == {"currency": "EUR", "rate": 2, "more": 2}
    assert tried(made, {"currency": "USD"}, rates=rates).outcome == Fail("KeyError: 'USD'")


def test_what_may_be_written_cannot_depend_on_a_table() -> None:
    """A job's creation asks for it, and has not read the table."""
    made = operation("made", WithTables, writes=lambda p: frozenset(p.rates))(converted)
    with pytest.raises(OperationBroken, match="`writes` of made looks into a table"):
        tried(made, {"currency": "rate"}, rates=table({"rate": {"rate": 2}}))


class Filled(WithTables):
    @model_validator(mode="after")
    def some_rates(self) -> Self:
        if not self.rates:
            raise ValueError("no rates")
        return self


def test_parameters_are_checked_before_their_tables_are_read() -> None:
    """A table with rows passes such a check in a job, and no job could be created."""
    made = operation("made", Filled, writes=lambda _: frozenset({"rate", "more"}))(converted)
    with pytest.raises(OperationBroken, match="check of the parameters of made looks into a table"):
        tried(made, {"currency": "EUR"}, rates=table({"EUR": {"rate": 2}}), more=[])

"""Operations are found by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from handlers.jobs.words.operation import Skip
from handlers.operations import Parameters, all_operations, operation, registry

if TYPE_CHECKING:
    from handlers.jobs.words.operation import Fields, Outcome


@pytest.fixture(autouse=True)
def only_for_this_test(monkeypatch: pytest.MonkeyPatch) -> None:
    all_operations()
    monkeypatch.setattr(registry, "_found", dict(registry._found))


class Nothing(Parameters):
    pass


def nothing(record: Fields, parameters: Any) -> Outcome:
    """Do nothing."""
    return Skip("nothing to do")


def test_those_of_the_package_are_there_and_described() -> None:
    operations = all_operations()

    assert {"set_fields", "adjust_number"} <= set(operations)
    for name, found in operations.items():
        assert found.name == name
        assert issubclass(found.parameters, Parameters)
        assert found.description


def test_they_cannot_be_changed_from_outside() -> None:
    with pytest.raises(TypeError):
        all_operations()["new"] = all_operations()["set_fields"]  # type: ignore[index]  # the point


def test_declaring_one_keeps_the_function_and_its_words() -> None:
    declared = operation("nothing", Nothing, writes=lambda _: frozenset())(nothing)

    assert declared is nothing
    assert registry._found["nothing"].apply is nothing
    assert registry._found["nothing"].description == "Do nothing."


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="'set_fields' is declared twice"):
        operation("set_fields", Nothing, writes=lambda _: frozenset())(nothing)


def test_parameters_that_would_lose_digits_are_refused() -> None:
    class Inexact(BaseModel):
        pass

    with pytest.raises(TypeError, match="'inexact' has to extend Parameters"):
        operation("inexact", Inexact, writes=lambda _: frozenset())  # type: ignore[type-var]  # the point

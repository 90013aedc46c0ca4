"""What corrects moto's answers changes what they cost, and nothing of what they say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
from moto.core import models
from moto.core.model import ListShape, MapShape, Shape, StructureShape
from moto.core.serialize import AttributePickerContext, NoAlias, XFormedAttributePicker
from moto.core.utils import get_service_model

from tests.support import aws, moto_answers

SERVICES: Final = ("dynamodb", "sqs", "s3")
DEPTH: Final = 5
"""Of the members that are looked at: attribute values hold attribute values without end."""


@pytest.fixture(autouse=True)
def corrected() -> None:
    moto_answers.correct()


def members(shape: Any, depth: int = DEPTH) -> Iterator[tuple[str, Shape]]:
    """As the serializer comes by them: each with the structure it is in."""
    if not depth or shape is None:
        return
    if isinstance(shape, StructureShape):
        for key, member in shape.members.items():
            member.parent = shape  # type: ignore[attr-defined]  # as moto does
            yield key, member
            yield from members(member, depth - 1)
    elif isinstance(shape, ListShape):
        yield from members(shape.member, depth - 1)
    elif isinstance(shape, MapShape):
        yield from members(shape.value, depth - 1)


def all_members() -> list[tuple[str, Shape]]:
    found: list[tuple[str, Shape]] = []
    for name in SERVICES:
        service = get_service_model(name)
        for operation in service.operation_names:
            found += members(service.operation_model(operation).output_shape)
    return found


@pytest.mark.parametrize("value", [{}, {"name": 1}, object()], ids=["empty", "dict", "object"])
def test_a_member_has_the_names_that_moto_says(value: object) -> None:
    picker, itself = XFormedAttributePicker(), moto_itself()
    found = all_members()
    assert len(found) > 1000
    for key, shape in found:
        context = AttributePickerContext(value, key, shape)
        for _ in range(2):
            assert [*picker.get_possible_keys(context)] == [*itself(picker, context)], key


def moto_itself() -> Any:
    return vars(XFormedAttributePicker.get_possible_keys)["__wrapped__"]


@pytest.mark.parametrize(("corrected", "asked"), [(True, 1), (False, 3)])
def test_the_names_are_derived_once(
    monkeypatch: pytest.MonkeyPatch, *, corrected: bool, asked: int
) -> None:
    """By moto itself for each answer: when it no longer does, the correction can go."""
    if not corrected:
        monkeypatch.setattr(XFormedAttributePicker, "get_possible_keys", moto_itself())
    seen: list[str] = []

    def has_alias(_: NoAlias, key: str) -> bool:
        seen.append(key)
        return True

    monkeypatch.setattr(NoAlias, "has_alias", has_alias)
    monkeypatch.setattr(moto_answers, "_NAMES", {})
    picker, shape = XFormedAttributePicker(), Shape("Name", {"type": "string"})
    for n in range(3):
        assert "Name" in [
            *picker.get_possible_keys(AttributePickerContext({"n": n}, "Name", shape))
        ]
    assert seen == ["Name"] * asked


def test_a_picker_of_other_names_has_its_own() -> None:
    context = AttributePickerContext({}, "TheName", Shape("Name", {"type": "structure"}))
    for picker in (XFormedAttributePicker(), XFormedAttributePicker([NoAlias])):
        assert [*picker.get_possible_keys(context)] == [*moto_itself()(picker, context)]
    assert [*picker.get_possible_keys(context)] == ["TheName", "the_name"]


def test_nothing_is_registered_for_another_library() -> None:
    with aws.moto() as made:
        assert models.responses_mock.registered() == []
        assert made.dynamodb.list_tables()["TableNames"] == [aws.CONTROL, aws.RECORDS]

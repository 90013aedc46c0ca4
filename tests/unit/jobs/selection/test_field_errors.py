"""What is wrong with a field is said with its path, in words about JSON."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from handlers.jobs.selection.field_errors import MAX_PATH, FieldError, Path, field_errors


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")

    number: Annotated[int, Field(strict=True, ge=1)] | None = None
    kind: Literal["a", "b"] | None = None
    exact: Decimal | None = None


class Model(BaseModel):
    inner: Inner | None = None
    names: dict[Annotated[str, Field(min_length=1)], list[str]] = {}


def errors(content: object) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Model.model_validate(content)
    return {each.field: each.detail for each in field_errors(caught.value)}


@pytest.mark.parametrize(
    ("content", "field", "detail"),
    [
        ([], "", "must be an object"),
        ({"inner": []}, "inner", "must be an object"),
        ({"inner": {"more": 1}}, "inner.more", "is not known here"),
        ({"inner": {"number": "1"}}, "inner.number", "must be a whole number"),
        ({"inner": {"number": 0}}, "inner.number", "must be at least 1"),
        ({"inner": {"kind": "c"}}, "inner.kind", "must be one of a, b"),
        ({"inner": {"exact": "x"}}, "inner.exact", "must be a number"),
        ({"names": []}, "names", "must be an object"),
        ({"names": {"a": {}}}, "names.a", "must be a list"),
        ({"names": {"a": ["b", 1]}}, "names.a[1]", "must be text"),
        ({"names": {"": []}}, 'names[""]', "the name must have at least 1 character"),
    ],
)
def test_each_kind_of_error_has_its_sentence(content: object, field: str, detail: str) -> None:
    assert errors(content) == {field: detail}


@pytest.mark.parametrize(
    ("path", "field", "pointer"),
    [
        ((), "", "#"),
        (("ids", 3), "ids[3]", "#/ids/3"),
        (("labels", "a.b"), 'labels["a.b"]', "#/labels/a.b"),
        (("labels", "a/b~c"), 'labels["a/b~c"]', "#/labels/a~1b~0c"),
        (("labels", ""), 'labels[""]', "#/labels/"),
        (("", "x"), '"".x', "#//x"),
    ],
)
def test_a_path_is_written_for_people_and_as_a_pointer(
    path: Path, field: str, pointer: str
) -> None:
    error = FieldError(path, "is wrong")
    assert (error.field, error.pointer) == (field, pointer)


def test_a_very_long_path_is_cut() -> None:
    error = FieldError(("x" * 100_000,), "is wrong")
    assert (len(error.field), len(error.pointer)) == (MAX_PATH, MAX_PATH + 1)

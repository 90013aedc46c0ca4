"""Where a model of parameters would let a binary floating-point number in.

pydantic's core schema of a model says what its annotations come to: aliases, constraints, nested
models, dataclasses and typed dictionaries are all resolved in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import BaseModel

_NOT_OF_VALUES: Final = frozenset(
    {"metadata", "computed_fields", "json_schema_input_schema", "default"}
)
"""Keys of a schema under which no schema of a parameter's value stands."""


def check_exact(operation: str, parameters: type[BaseModel]) -> None:
    """Raise TypeError for the first field that can hold a float. A model that names a type which
    is not defined yet passes: pydantic completes it when it is first used."""
    if not parameters.__pydantic_complete__:
        return
    for field, how in _Walk().into(parameters.__pydantic_core_schema__):
        raise TypeError(
            f"operation {operation!r}: the parameter {field!r} {how}, which does not keep a number "
            "exactly; use Number of fairlane.operations, Decimal or int instead"
        )


class _Walk:
    """One walk over a schema. A model that contains itself refers to its definition."""

    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}

    def into(self, part: object, names: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
        """Each field that can hold a float, as ``outer.inner`` for one of a nested model, and
        how it can."""
        if isinstance(part, list | tuple):
            for each in part:
                yield from self.into(each, names)
        elif isinstance(part, Mapping):
            if isinstance(part.get("type"), str):
                yield from self._schema(part, names)
            else:  # schemas by name: of fields, or of a union's choices
                for name, each in part.items():
                    yield from self.into(each, (*names, *_field(name, each)))

    def _schema(self, schema: Any, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        match schema["type"]:
            case "definitions":
                self._definitions |= {each["ref"]: each for each in schema["definitions"]}
                yield from self.into(schema["schema"], names)
            case "definition-ref":  # once: it may be inside its own definition
                yield from self.into(self._definitions.pop(schema["schema_ref"], None), names)
            case "dataclass-field":
                yield from self.into(schema["schema"], (*names, schema["name"]))
            case _:
                yield from ((".".join(names), how) for how in _how(schema))
                for key, part in schema.items():
                    # A validator that replaces that of the type leaves the type only here.
                    inner = part.get("schema") if key == "serialization" else part
                    if key not in _NOT_OF_VALUES:
                        yield from self.into(inner, names)


def _field(name: object, schema: object) -> tuple[str, ...]:
    """The name, if it is a field's; a choice of a union has none."""
    is_field = isinstance(schema, Mapping) and str(schema.get("type")).endswith("-field")
    return (str(name),) if is_field else ()


def _how(schema: Any) -> Iterator[str]:
    """What is inexact of a schema itself; ``_Walk`` looks at those within it."""
    if _is_inexact(schema.get("default")):
        yield f"has the default {schema['default']!r}, a float"
    match schema["type"]:
        case "float" | "complex":
            yield f"is declared with {schema['type']}"
        case "literal" if _is_inexact(schema["expected"]):
            yield "is declared with a float in a Literal"
        case "enum" if _is_inexact([each.value for each in schema["members"]]):
            yield "is declared with an Enum of float"
        case "is-instance":
            classes = schema["cls"] if isinstance(schema["cls"], tuple) else (schema["cls"],)
            for each in classes:
                if isinstance(each, type) and issubclass(each, float):
                    yield f"is declared with {each.__name__}, a float"


def _is_inexact(value: object) -> bool:
    """Whether a number in the value, or in the lists and maps that it consists of, is inexact."""
    match value:
        case float() | complex():
            return True
        case Mapping():
            return any(map(_is_inexact, (*value, *value.values())))
        case list() | tuple() | set() | frozenset():
            return any(map(_is_inexact, value))
    return False

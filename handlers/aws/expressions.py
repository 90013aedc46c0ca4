"""Conditions and updates as DynamoDB expressions.

Every name and value is a placeholder, so no attribute name is a reserved word or a syntax error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..jobs.words.stored_values import stored
from ..jobs.words.writes import (
    AnyOf,
    AtMost,
    Below,
    BelowName,
    Differs,
    Equals,
    Missing,
    Present,
    Update,
)
from .attributes import encode_one

if TYPE_CHECKING:
    from ..jobs.words.writes import Condition, Value, When

Parameters: TypeAlias = dict[str, Any]
"""The expression arguments of a DynamoDB call; empty ones are left out."""


class Placeholders:
    """The names and values of one call's expressions."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Any] = {}

    def name(self, name: str) -> str:
        """Raises BadValue."""
        if name not in self._names:
            stored(name, name)
            self._names[name] = f"#{len(self._names)}"
        return self._names[name]

    def value(self, name: str, value: Value) -> str:
        """name: the attribute it is meant for, to be named in errors."""
        placeholder = f":{len(self._values)}"
        self._values[placeholder] = encode_one(name, value)
        return placeholder

    def parameters(self) -> Parameters:
        names = {placeholder: name for name, placeholder in self._names.items()}
        return _present(ExpressionAttributeNames=names, ExpressionAttributeValues=self._values)


def condition_parameters(when: When) -> Parameters:
    """The arguments that make a call conditional."""
    placeholders = Placeholders()
    condition = _all(when, placeholders)
    return _present(ConditionExpression=condition) | placeholders.parameters()


def update_parameters(update: Update) -> Parameters:
    """The arguments of an UpdateItem call."""
    placeholders = Placeholders()
    expression = _update(update, placeholders)
    condition = _all(update.when, placeholders)
    return (
        _present(UpdateExpression=expression, ConditionExpression=condition)
        | placeholders.parameters()
    )


def _update(update: Update, to: Placeholders) -> str:
    sets = [f"{to.name(n)} = {to.value(n, v)}" for n, v in update.set.items()]
    adds = [f"{to.name(n)} {to.value(n, v)}" for n, v in update.add.items()]
    removes = [to.name(n) for n in update.remove]
    clauses = (("SET", sets), ("ADD", adds), ("REMOVE", removes))
    return " ".join(f"{verb} {', '.join(parts)}" for verb, parts in clauses if parts)


def _all(when: When, to: Placeholders) -> str:
    return " AND ".join(_condition(condition, to) for condition in when)


def _condition(condition: Condition, to: Placeholders) -> str:
    match condition:
        case AnyOf((only,)):
            # DynamoDB refuses parentheses around nothing but parentheses.
            return _condition(only, to)
        case AnyOf(conditions):
            return f"({' OR '.join(_condition(one, to) for one in conditions)})"
        case Missing(name):
            return f"attribute_not_exists({to.name(name)})"
        case Present(name):
            return f"attribute_exists({to.name(name)})"
        case BelowName(name, other):
            return f"{to.name(name)} < {to.name(other)}"
        case Differs(name, value):
            missing = f"attribute_not_exists({to.name(name)})"
            return f"({missing} OR {to.name(name)} <> {to.value(name, value)})"
        case Equals(name, value) | Below(name, value) | AtMost(name, value):
            return f"{to.name(name)} {_operator(condition)} {to.value(name, value)}"


def _operator(condition: Equals | Below | AtMost) -> str:
    match condition:
        case Equals():
            return "="
        case Below():
            return "<"
        case AtMost():
            return "<="


def _present(**parameters: Any) -> Parameters:
    return {name: value for name, value in parameters.items() if value}

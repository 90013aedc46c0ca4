"""What is wrong with single fields of a body: where, and in the words of the client who sent it.

The models say what is allowed; pydantic's own messages speak of its types. Here each kind of its
errors has a sentence about JSON. A validator's own ``ValueError`` is a sentence already.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..words.filters import TAGS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

Path = tuple["str | int", ...]

MAX_PATH: Final = 200
"""Characters of a path: a client may call a field anything."""
_PLAIN: Final = re.compile(r"[^\s.\[\]\"/~]+")
_KEY: Final = "[key]"
"""The end of pydantic's path to an entry's name, as opposed to its value."""
_WORDS: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "does not have the form {pattern}",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "float_type": "must be a number",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "set_type": "must be a list",
    "frozen_set_type": "must be a list",
    "dict_type": "must be an object",
    "mapping_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "finite_number": "must be a finite number",
}
"""By pydantic's kinds of errors. {…}: a value of the error's context."""


@dataclass(frozen=True)
class FieldError:
    """One thing that is wrong."""

    path: Path
    """Names and indexes from the body's top; empty: the whole body."""
    detail: str
    """What is wrong, such as "must be a list"."""

    @property
    def field(self) -> str:
        """The path for people, such as ``ids[3]``; "" for the whole body."""
        text = ""
        for part in self.path:
            if isinstance(part, int):
                text += f"[{part}]"
            elif _PLAIN.fullmatch(part):
                text += f".{part}" if text else part
            else:
                text += f"[{json.dumps(part, ensure_ascii=False)}]" if text else json.dumps(part)
            if len(text) > MAX_PATH:
                break
        return text[:MAX_PATH]

    @property
    def sentence(self) -> str:
        """What is wrong and where, such as ``ids must be a list``."""
        return f"{self.field} {self.detail}".lstrip()

    @property
    def pointer(self) -> str:
        """The path as a JSON Pointer in a URI fragment's place (RFC 6901), such as ``#/ids/3``."""
        parts = (str(part).replace("~", "~0").replace("/", "~1") for part in self.path)
        return "#" + "".join(f"/{part}" for part in parts)[:MAX_PATH]


def field_errors(error: ValidationError, prefix: Path = ()) -> Sequence[FieldError]:
    """Everything that a model found wrong, in the order of its fields. prefix: the path of what
    was checked."""
    return [_field_error(problem, prefix) for problem in error.errors(include_url=False)]


def _field_error(problem: ErrorDetails, prefix: Path) -> FieldError:
    parts = [part for part in problem["loc"] if part not in TAGS]
    detail = _words(problem)
    if parts and parts[-1] == _KEY:
        parts.pop()
        detail = f"the name {detail}"
    return FieldError((*prefix, *parts), detail)


def _words(problem: ErrorDetails) -> str:
    known = _WORDS.get(problem["type"])
    if known is None:
        return problem["msg"].removeprefix("Value error, ")
    context: dict[str, Any] = problem.get("ctx", {})
    one = context.get("min_length") == 1 or context.get("max_length") == 1
    if "expected" in context:
        context = {"expected": str(context["expected"]).replace("'", "").replace(" or ", ", ")}
    text = known.format_map(context)
    return text.replace("characters", "character").replace("entries", "entry") if one else text

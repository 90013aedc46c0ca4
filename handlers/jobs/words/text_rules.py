"""The rules for names and ids, which must survive every layer unchanged."""

from __future__ import annotations

import unicodedata
from typing import Final

from pydantic import WithJsonSchema

NO_CONTROLS: Final = "^[^\\u0000-\\u001F\\u007F-\\u009F]*$"


def text_schema(max_bytes: int) -> WithJsonSchema:
    """``text_problem``'s rules, as far as JSON Schema can express them: it counts characters."""
    return WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": max_bytes, "pattern": NO_CONTROLS}
    )


def text_problem(text: str, max_bytes: int) -> str | None:
    """What is wrong with a name or id that has to survive every layer; None when nothing is."""
    if not text:
        return "must not be empty"
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "must not hold half of a surrogate pair"
    if size > max_bytes:
        return f"is {size} bytes as UTF-8, at most {max_bytes} are allowed"
    if not text.isprintable() and any(unicodedata.category(c) == "Cc" for c in text):
        return "must not hold control characters"
    return None

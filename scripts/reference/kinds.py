"""A JSON Schema in a few words, for a cell of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

WORDS: Final = {
    "string": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "`true` or `false`",
    "object": "object",
    "null": "null",
}


def kind(schema: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """document: where the schema's references lead, by path."""
    if (where := schema.get("$ref")) is not None:
        return _named(where.rpartition("/")[2], document, where)
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if (kinds := schema.get("anyOf") or schema.get("oneOf")) is not None:
        said = [kind(each, document) for each in kinds if each.get("type") != "null"]
        nothing = any(each.get("type") == "null" for each in kinds)
        return " or ".join([*dict.fromkeys(said), *(["null"] if nothing else [])])
    if schema.get("type") == "array":
        inner = kind(schema["items"], document) if "items" in schema else "anything"
        return f"list of {inner}"
    return _bounded(schema)


def _named(name: str, document: Mapping[str, Any], where: str) -> str:
    found: Any = document
    for part in where.removeprefix("#/").split("/"):
        found = found[part]
    if "properties" not in found:
        return kind(found, document)
    return f"[{name}](#{name.lower()})"


def _bounded(schema: Mapping[str, Any]) -> str:
    if "type" not in schema:
        return "anything"
    word = {"date-time": "time (RFC 3339)"}.get(schema.get("format", ""), WORDS[schema["type"]])
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    if low is not None:
        word += f", over {low:,}" if "exclusiveMinimum" in schema else f", at least {low:,}"
    return word if high is None else f"{word}, at most {high:,}"

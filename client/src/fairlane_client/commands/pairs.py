"""Options of the form NAME=VALUE, and values that are JSON."""

from __future__ import annotations

from typing import Any

import typer

from ..exact import exact_loads


def labels(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in pairs:
        name, value = pair("--label", each)
        if name in found:
            raise typer.BadParameter(f"--label {name}= is given twice; a label has one value")
        found[name] = value
    return found


def parameters(pairs: list[str], whole: str | None) -> dict[str, Any]:
    """Numbers stay exact."""
    found = {} if whole is None else json_object("--params", whole)
    named = set[str]()
    for each in pairs:
        name, text = pair("--param", each)
        if name in named:
            raise typer.BadParameter(f"--param {name}= is given twice; a parameter has one value")
        named.add(name)
        hint = (
            f". A text value needs its own quotes: --param '{name}=\"{text}\"'"
            if text.isalnum()
            else ""
        )
        found[name] = json_value(f"--param {name}", text, hint)
    return found


def pair(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"{option} {text!r} is not NAME=VALUE")
    return name, value


def json_object(option: str, text: str) -> dict[str, Any]:
    value = json_value(option, text)
    if not isinstance(value, dict):
        raise typer.BadParameter(f"{option} is not a JSON object")
    return value


def json_value(option: str, text: str, hint: str = "") -> Any:
    try:
        return exact_loads(text)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"{option}: {text!r} is not JSON ({error}){hint}") from error

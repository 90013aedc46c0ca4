"""Expectations and information for people, at 80 columns as well."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from .framework import Expectation, Information


def listing(expectations: Iterable[Expectation], information: Iterable[Information] = ()) -> Table:
    """A mark and a sentence for each: what, what was seen, and what was expected of it. Information
    has a dot, and stands last."""
    grid = Table.grid(padding=(0, 1))
    for each in expectations:
        mark = Text("✓", "green") if each.ok else Text("✗", "red")
        expected = "" if each.ok and each.saw == each.expected else f"expected {each.expected}"
        grid.add_row(mark, _sentence(each.what, each.saw, expected))
    for told in information:
        grid.add_row(Text("·", "dim"), _sentence(told.what, told.saw, told.beside))
    return grid


def _sentence(what: str, saw: str, beside: str) -> Text:
    return Text.assemble(f"{what}: ", (saw, "bold"), (f" — {beside}" if beside else "", "dim"))

"""What stands under a field, a member or a constant in the source."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType


@cache
def under(owner: type | ModuleType) -> Mapping[str, str]:
    """Name -> the text under it, as Markdown on one line. Of a class, its bases' too."""
    if isinstance(owner, type):
        found: dict[str, str] = {}
        for each in reversed(owner.__mro__):
            if each.__module__.startswith(("handlers.", "infra.", "fairlane_client.")):
                [node] = ast.parse(textwrap.dedent(inspect.getsource(each))).body
                found |= _texts(getattr(node, "body", ()))
        return found
    return _texts(ast.parse(inspect.getsource(owner)).body)


def markdown(text: str) -> str:
    """A docstring as one line of Markdown."""
    line = " ".join(text.split())
    return re.sub(r"``(.+?)``", r"`\1`", line)


def cell(text: object) -> str:
    """Text for one cell of a table."""
    return str(text).replace("|", "\\|")


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(map(cell, line)) + " |\n" for line in lines)


def _texts(body: Iterable[ast.stmt]) -> dict[str, str]:
    found: dict[str, str] = {}
    above = None
    for node in body:
        match node:
            case (
                ast.AnnAssign(target=ast.Name() as target)
                | ast.Assign(targets=[ast.Name() as target])
            ):
                above = target.id
            case ast.Expr(value=ast.Constant(value=text)) if above and isinstance(text, str):
                found[above] = markdown(text)
                above = None
            case _:
                above = None
    return found

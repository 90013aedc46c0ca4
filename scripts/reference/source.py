"""The project's source as trees, where a fact is in a call and in no table."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


@cache
def calls(folder: str) -> tuple[ast.Call, ...]:
    """Every call in the modules under a folder of the project."""
    return tuple(
        node
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
    )

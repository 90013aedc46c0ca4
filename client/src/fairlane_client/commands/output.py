"""Where commands print. For people in a terminal: its width, colours. In a pipe or a file: lines as
long as they are, and no colours."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import Console

UNBOUNDED: Final = 100_000
"""Columns."""


def console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    made = Console(stderr=stderr)
    if not made.is_terminal:
        made.width = UNBOUNDED
    return made


def say(text: str) -> None:
    """Beside what is printed: on standard error."""
    print(text, file=sys.stderr)

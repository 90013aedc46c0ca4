"""The exit statuses of commands that compare: like diff, 1 for a difference and 2 for trouble."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import typer

from fairlane_client.commands.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

DIFFERENT: Final = 1
TROUBLE: Final = 2


@contextmanager
def comparing() -> Iterator[None]:
    """Around a command: whatever keeps it from comparing ends it with ``TROUBLE``, also a bug,
    with which Python itself would exit with the status of a difference."""
    try:
        yield
    except CommandError as error:
        error.status = TROUBLE
        raise
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        traceback.print_exc()
        raise typer.Exit(TROUBLE) from error

"""What some commands need that the installed package does not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from fairlane_client.commands.errors import CommandError

CHECKOUT: Final = "a checkout of Fairlane and its development tools: `make setup` there"


LOCAL: Final = (
    "the package's extra for it: `pip install 'fairlane[local]'`, or `make setup` in a checkout"
)


@contextmanager
def in_checkout(command: str) -> Iterator[None]:
    """Around imports. Raises CommandError."""
    try:
        yield
    except ModuleNotFoundError as error:
        why = f"`fairlane {command}` needs {CHECKOUT} ({error.name} is not installed)"
        raise CommandError(why) from error


def airports_of_checkout(command: str) -> None:
    """Before a command starts a stack to load the airports into: where their data are missing, only
    the end of the load would tell. Raises CommandError."""
    with in_checkout(command):
        import airportsdata  # noqa: F401, PLC0415  only a checkout has it

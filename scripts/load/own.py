"""A stack of a command's own, beside whatever else is up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from scripts.local.endings import STOPPING, to_the_end
from scripts.local.errors import AlreadyUp, InUse
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack
from scripts.local.state import ROOT
from scripts.local.steps import Steps


def up(  # noqa: PLR0913  each says what the stack has
    name: str,
    *,
    steps: Steps,
    settings: Chosen | None = None,
    workers: int = 1,
    records: bool = True,
    search: bool = False,
    iam: bool = False,
    one_by_one: bool = False,
    root: Path = ROOT,
) -> LocalStack:
    """Bring up a stack to measure on, called ``name``, or ``name-2`` and so on when that one is
    another command's. one_by_one: see LocalStack. Raises LocalError."""
    for number in count(1):
        own = LocalStack(
            name if number == 1 else f"{name}-{number}",
            root=root,
            settings=settings,
            workers=workers,
            records=records,
            search=search,
            iam=iam,
            steps=steps,
        )
        own.measured = True
        own.one_by_one = one_by_one
        try:
            return own.up()
        except (AlreadyUp, InUse):
            continue
    raise AssertionError("there is always a next number")


@contextmanager
def taken_down(stack: LocalStack, *, steps: Steps, keep: bool = False) -> Iterator[LocalStack]:
    """The stack, which is stopped at the end (also on Ctrl-C, and wholly on several); with ``keep``
    only when the block ends in an error."""
    try:
        yield stack
    except BaseException:
        with to_the_end():
            steps.say(STOPPING)
            _down(stack, steps)
        raise
    if not keep:
        with to_the_end():
            _down(stack, steps)


def _down(stack: LocalStack, steps: Steps) -> None:
    with steps.step("Stopping the local AWS"):
        stack.down()

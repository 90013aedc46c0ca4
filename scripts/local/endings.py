"""Signals that end a command, while what it started is taken down: once begun, that goes through to
its end, however often the user presses Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeAlias

from .steps import Steps

STOPPING: Final = "Stopping what was started ..."
"""Said at once: it takes some seconds."""
ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handler: TypeAlias = Callable[[int, FrameType | None], Any]


@contextmanager
def to_the_end() -> Iterator[None]:
    """A signal that comes while the block runs takes effect when the block has ended."""
    came: list[int] = []
    with _handled(lambda number, *_: came.append(number)):
        yield
    if came:
        signal.raise_signal(came[0])


@contextmanager
def ended_once(steps: Steps) -> Iterator[None]:
    """The first signal is said and ends the block, which takes down what it has started; others are
    ignored until it has."""
    ended = False

    def end(number: int, frame: FrameType | None, before: Handler) -> None:
        nonlocal ended
        if not ended:
            ended = True
            steps.say(STOPPING)
            before(number, frame)

    with _handled(end):
        yield


@contextmanager
def _handled(handle: Callable[[int, FrameType | None, Handler], None]) -> Iterator[None]:
    """Give ``handle`` each ending signal that has a handler, and that handler. One that is ignored
    stays so. Outside the main thread, which alone gets signals, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: Mapping[signal.Signals, Handler] = {
        number: known for number in ENDING if callable(known := signal.getsignal(number))
    }
    for each in before:
        signal.signal(
            each, lambda number, frame: handle(number, frame, before[signal.Signals(number)])
        )
    try:
        yield
    finally:
        for number, known in before.items():
            signal.signal(number, known)

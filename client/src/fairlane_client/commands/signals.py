"""How signals end the command: by an exception, so that it cleans up, and on the spot while there
is nothing to clean up."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a cancelled CI job, a closed terminal."""


def clean_up() -> None:
    """From now on a signal raises KeyboardInterrupt (Ctrl-C) or SystemExit where the command is."""
    _handle(lambda ended, _: sys.exit(128 + ended))
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_at_once() -> None:
    """From now on a signal ends the process. An exception could be dropped by a library's compiled
    code while that is imported, and would be printed while Python exits."""
    _handle(lambda ended, _: os._exit(128 + ended))


@contextmanager
def ended_at_once() -> Iterator[None]:
    """Signals end the process while the block imports what the command needs."""
    if threading.current_thread() is not threading.main_thread():  # which alone gets signals
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDING}
    end_at_once()
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handle(handler: Callable[[int, Any], Any]) -> None:
    """One that is ignored, as by nohup and in a shell's background, stays so."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)

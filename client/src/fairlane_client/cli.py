"""The ``fairlane`` command.

What it needs is imported inside ``main``: Ctrl-C ends it cleanly from its first moment on.
"""

from __future__ import annotations

import sys

from .commands import signals

INTERRUPTED = 130


def main() -> None:
    """Entry point. An expected error is one message and its exit status, mostly 1; a bug is a
    traceback.

    Being ended (a closed terminal, a cancelled CI job) runs the same clean-up as Ctrl-C.
    """
    signals.clean_up()
    try:
        _run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        signals.end_at_once()


def _run() -> None:
    with signals.ended_at_once():
        from .commands.app import app
        from .commands.errors import CommandError
        from .commands.output import say

    try:
        app()
    except CommandError as error:
        say(f"error: {error}")
        sys.exit(error.status)


if __name__ == "__main__":
    main()

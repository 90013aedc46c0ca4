"""The bulk lane's worker: a process with a few slots (``slots``).

It can be asked to end from its first line on. Its imports take a second, in which a signal would
otherwise end it in its own way, or be lost: the first process of a container has no default for
SIGTERM.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Serve until SIGTERM or SIGINT; without either, a worker that cannot work ends with 1. Bad
    settings stop the process before it takes a message."""
    asked: list[int] = []
    for each in (signal.SIGTERM, signal.SIGINT):
        # No lock in a handler: it runs in the middle of whatever the main thread was doing.
        signal.signal(each, lambda number, _: asked.append(number))
    from .slots import serve  # noqa: PLC0415  see above

    sys.exit(serve(asked))


if __name__ == "__main__":
    main()

"""What ends a command with a message instead of a traceback."""

from __future__ import annotations


class CommandError(Exception):
    """Expected: the command prints the message and exits with ``status``."""

    status = 1

"""What can go wrong with a local stack. Each message names the cause and what to do."""

from __future__ import annotations

from fairlane_client.commands.errors import CommandError


class LocalError(CommandError):
    """The local stack cannot do what was asked."""


class AlreadyUp(LocalError):
    """A stack of this name is running already."""


class NotUp(LocalError):
    """No stack of this name is running."""


class InUse(LocalError):
    """Another command is starting or stopping this stack at this moment."""

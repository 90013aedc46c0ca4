"""The record of a command that changes a deployment: who ran it, and what became of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from handlers.jobs.storage.operator_log import close_entry, open_entry
from handlers.jobs.words.errors import FairlaneError
from scripts.local.errors import LocalError

from .deployment import Deployment

UNNOTED = "nothing was done, because who does it cannot be written down"


@dataclass
class Note:
    """What the command has to say of itself when it ends."""

    outcome: str = "done"


@contextmanager
def noted(here: Deployment, command: str, **arguments: object) -> Iterator[Note]:
    """Around what a command changes. Arguments that are None or False were not given. Raises
    LocalError, before anything is changed, when the record cannot be written."""
    given = {name: value for name, value in arguments.items() if value not in (None, False)}
    try:
        who = here.operator()
        key = open_entry(here.world, who=who, command=command, arguments=given)
    except (BotoCoreError, ClientError, FairlaneError) as error:
        raise LocalError(f"{UNNOTED}: {error}") from error
    note = Note()
    try:
        yield note
    except BaseException as error:
        note.outcome = f"failed: {str(error) or type(error).__name__}"
        raise
    finally:
        # The record of who did it is there; without its outcome it says that nobody knows.
        with suppress(FairlaneError):
            close_entry(here.world, key, note.outcome)

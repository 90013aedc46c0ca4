"""What the check says: one row for each thing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from botocore.exceptions import BotoCoreError
from botocore.exceptions import ClientError as AwsError

from fairlane_client import ClientError, NotAllowed
from handlers.jobs.words.errors import FairlaneError
from scripts.local.errors import LocalError


class Verdict(StrEnum):
    HELD = "held"
    BROKEN = "broken"
    UNCHECKED = "not checked"
    """A right of the caller is missing, the stack has no such part, or it did not happen."""
    ON_AWS = "only on AWS"
    """The local stack has nothing that could show it."""


@dataclass(frozen=True)
class Row:
    what: str
    verdict: Verdict
    saw: str
    """With the numbers, and what to do."""


def judged(what: str, saw: str, *, ok: bool) -> Row:
    return Row(what, Verdict.HELD if ok else Verdict.BROKEN, saw)


def unchecked(what: str, why: str) -> Row:
    return Row(what, Verdict.UNCHECKED, f"could not be checked: {why}")


@contextmanager
def told(what: str, rows: list[Row]) -> Iterator[None]:
    """Around one thing: whatever keeps it from being judged is a row, and the others go on."""
    try:
        yield
    except (NotAllowed, AwsError, BotoCoreError, FairlaneError, LocalError) as error:
        rows.append(unchecked(what, str(error)))
    except ClientError as error:
        # The API refused, did not answer or did not come to an end.
        rows.append(judged(what, str(error), ok=False))

"""Job ids by the beginning that only one of them has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

import typer

if TYPE_CHECKING:
    from ..client import Client

WHOLE: Final = 32
"""Hexadecimal digits of an id."""
TIME: Final = 12
"""The first of them are the time of its creation, in milliseconds."""
SHORTEST: Final = TIME
NAMED: Final = 5
"""Jobs that a message names."""
LATEST: Final = 253_402_300_799_000
"""Milliseconds: the last second that has a date (year 9999)."""


def short(ids: Iterable[str]) -> Sequence[str]:
    """The shortest beginnings of one length that tell these apart. From the whole time on, so that
    a job that is not among them has another beginning, but for one of the same millisecond."""
    whole = list(ids)
    for length in range(SHORTEST, WHOLE):
        cut = [id_[:length] for id_ in whole]
        if len(set(cut)) == len(set(whole)):
            return cut
    return whole


def checked(given: str) -> str:
    """What is typed for a job, in the letters of ids. Raises BadParameter for what no id begins
    with."""
    typed = given.lower()
    if not 0 < len(typed) <= WHOLE or not set(typed) <= set("0123456789abcdef"):
        raise typer.BadParameter(
            f"no job has an id that begins with {given!r}: ids are {WHOLE} hexadecimal digits"
        )
    return typed


def whole(client: Client, beginning: str) -> str:
    """The id of the one job that begins so; of a whole id the API says whether there is its job.
    Raises BadParameter when there are several or none, and what the client raises."""
    if len(beginning) == WHOLE:
        return beginning
    after, before = _times(beginning)
    jobs = client.jobs(created_after=after, created_before=before)
    found = [job.id for job in islice((j for j in jobs if j.id.startswith(beginning)), NAMED)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise typer.BadParameter(f"no job of this tenant has an id that begins with {beginning}")
    more = " and others" if len(found) == NAMED else ""
    raise typer.BadParameter(
        f"several jobs have ids that begin with {beginning}: {', '.join(found)}{more}; give more "
        "characters"
    )


def _times(beginning: str) -> tuple[datetime, datetime]:
    """When jobs were created whose ids begin so."""
    digits = beginning[:TIME]
    first = int(digits.ljust(TIME, "0"), 16)
    last = int(digits.ljust(TIME, "f"), 16)
    return _moment(first), _moment(last + 1)


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(0, tz=UTC) + timedelta(milliseconds=min(ms, LATEST))

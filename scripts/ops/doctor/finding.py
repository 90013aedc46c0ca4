"""What a check says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    OK = "ok"
    NOTE = "note"
    """Worth knowing, and not wrong."""
    WRONG = "wrong"
    UNREADABLE = "unreadable"
    """It could not be looked at: a right of the caller is missing, or this AWS does not tell."""


@dataclass(frozen=True)
class Finding:
    check: str
    grade: Grade
    what: str
    """One sentence or a few, with the numbers."""
    do: str = ""
    """A page of the runbook, or a command."""


def ok(check: str, what: str) -> Finding:
    return Finding(check, Grade.OK, what)


def note(check: str, what: str, do: str = "") -> Finding:
    return Finding(check, Grade.NOTE, what, do)


def wrong(check: str, what: str, do: str = "") -> Finding:
    return Finding(check, Grade.WRONG, what, do)


def unreadable(check: str, what: str) -> Finding:
    return Finding(check, Grade.UNREADABLE, what)

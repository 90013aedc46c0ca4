"""A transaction, the job it leads to, and executing it until its outcome is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from ..words.errors import Denied, FairlaneError, OutcomeUnknown, Refused, Transient, Why
from ..words.timing import backoff_ms
from .control_table import read_job

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..words.errors import Reason
    from ..words.job import Job
    from ..words.ports import World
    from ..words.writes import Write

TRIES: Final = 6
BASE: Final = 0.05
CAP: Final = 2.0
"""Seconds between tries; together they stay well under a chunk's time."""

CONTENTION: Final = frozenset({Why.CONFLICT, Why.THROTTLED})

T = TypeVar("T")


def not_known(world: World) -> bool:  # noqa: ARG001  asked like any other
    """For a transaction whose effect cannot be read afterwards: its caller may write it again, or
    find it refused."""
    return False


@dataclass(frozen=True)
class Transaction:
    """Writes that happen together or not at all."""

    action: str
    writes: Mapping[str, Write]
    """The writes by role, in the order they are sent."""
    applied: Callable[[World], bool] = not_known
    """Reads whether the transaction has taken effect; called after a lost reply, and after a
    refusal that its own earlier try may have caused. Raises Transient, Undecodable."""


@dataclass(frozen=True)
class Transition:
    """A transaction, and the job as it is once that has taken effect."""

    transaction: Transaction
    after: Job


def job_is(job_id: str, holds: Callable[[Job], bool]) -> Callable[[World], bool]:
    """For ``Transaction.applied``: the stored job exists and this holds of it."""

    def applied(world: World) -> bool:
        job = read_job(world, job_id)
        return job is not None and holds(job)

    return applied


class Rejected(FairlaneError):
    """A condition of the transaction did not hold; nothing was written."""

    def __init__(self, action: str, reasons: Mapping[str, Reason]) -> None:
        self.reasons = reasons
        """The objections, by role of the write."""
        super().__init__(f"{action} refused by {', '.join(reasons) or 'the store'}")


class Contended(Transient):
    """Contention refused every try, the last one with these objections; nothing was written."""

    def __init__(self, action: str, reasons: Mapping[str, Reason]) -> None:
        self.reasons = reasons
        """The objections, by role of the write."""
        super().__init__(f"{action}: contention at {', '.join(reasons)} during every try")


class Indeterminate(Transient):
    """Replies were lost, and whether the transaction took effect could not be read."""


def execute(world: World, transaction: Transaction) -> None:
    """Write the transaction once, and know that it was written.

    Contention is retried with jitter. Raises Rejected (nothing written), Transient when it could
    not be written in a few tries (Contended when the last one was refused for contention, Denied
    when it was refused for a permission), or Indeterminate when it cannot be known.
    """
    roles = list(transaction.writes)
    unsure = False
    last: Transient | Refused | None = None
    for attempt in range(TRIES):
        asked: int | None = None
        try:
            world.store.transact(transaction.action, list(transaction.writes.values()))
        except OutcomeUnknown:
            unsure = True
        except Transient as error:
            last, asked = error, error.retry_after_ms
        except Refused as refused:
            if not refused.only_contention:
                if unsure and _was_applied(world, transaction):
                    return
                raise Rejected(transaction.action, _lasting(roles, refused)) from refused
            last = refused
        else:
            return
        if unsure and _was_applied(world, transaction):
            return
        back_off(world, attempt, asked)
    if unsure:
        raise Indeterminate(f"{transaction.action}: replies lost, and not found written")
    raise _not_written(transaction, last) from last


def _not_written(transaction: Transaction, last: Transient | Refused | None) -> Transient:
    """last: why the last try failed."""
    if isinstance(last, Refused):
        return Contended(transaction.action, _by_role(list(transaction.writes), last))
    kind = Denied if isinstance(last, Denied) else Transient
    return kind(f"{transaction.action}: not written in {TRIES} tries: {last}")


def _was_applied(world: World, transaction: Transaction) -> bool:
    try:
        return retry_transient(world, lambda: transaction.applied(world))
    except Transient as error:
        # Transient would say that nothing was written.
        raise Indeterminate(f"{transaction.action}: replies lost, and cannot be read") from error


def retry_transient(world: World, call: Callable[[], T]) -> T:
    """The call's result, retried a few times when it raises Transient."""
    for attempt in range(TRIES - 1):
        try:
            return call()
        except Transient as error:
            back_off(world, attempt, error.retry_after_ms)
    return call()


def back_off(world: World, attempt: int, asked_ms: int | None = None) -> None:
    runtime = world.runtime
    runtime.sleep(
        backoff_ms(attempt, base=BASE, cap=CAP, random=runtime.random(), asked_ms=asked_ms)
    )


def _by_role(roles: list[str], refused: Refused) -> dict[str, Reason]:
    return {role: reason for role, reason in zip(roles, refused.reasons, strict=False) if reason}


def _lasting(roles: list[str], refused: Refused) -> dict[str, Reason]:
    """The objections by role that stay when the contention beside them has passed."""
    objections = _by_role(roles, refused).items()
    return {role: reason for role, reason in objections if reason.why not in CONTENTION}

"""What a finished job leaves is removed before its message is. The control: a worker that drops
the message of a finished job at once.

Recovery stands still in both, so that the message is all that can bring the clean-up back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from threading import Event
from typing import Final
from unittest.mock import patch

from handlers.jobs.execution.decisions import DeleteMessage, Finding
from handlers.jobs.execution.delivery import _DeliveryCheck
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.storage import control_table
from handlers.jobs.storage.transaction import TRIES
from handlers.jobs.words.errors import PayloadGone
from handlers.jobs.words.job import Job
from handlers.jobs.words.limits import INLINE_ID_BYTES
from handlers.jobs.words.ports import Store, World
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update, Write

from .framework import Bench, Expectation, Scenario
from .site import WITHIN, Site, site, slots
from .taps import Down

WIDE: Final = "r" * 200
"""The start of ids so long that a few of them need a stored list."""
LISTED: Final = INLINE_ID_BYTES // len(WIDE)
TERMINAL: Final = {state.value for state in State if state.terminal}


def run(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "cleanup") as here:
        yield from _list_is_deleted(bench, here)
        yield from _subject_is_freed(bench, here)


def control(bench: Bench) -> Iterator[Expectation]:
    with (
        site(bench, "cleanup-control") as here,
        patch.object(_DeliveryCheck, "find_out", _drop_at_once),
    ):
        job, down = _listed(here), Down(TRIES)
        broken = replace(here.world, payloads=here.payloads(down))
        with bench.steps.step("A worker that drops finished jobs' messages"), slots(broken):
            here.until("every message is gone", lambda: here.messages() == 0)
        yield Expectation.equal(
            "the job's list of ids stays for ever", expected=True, saw=_list_is_there(here, job)
        )
        undecodable, freeing = _undecodable(here), Down(TRIES)
        with slots(_without_release(here, freeing)):
            here.until("every message is gone", lambda: here.messages() == 0)
        yield Expectation.equal(
            "a subject stays taken by a job that has ended",
            expected=(undecodable.id, State.FAILED.value),
            saw=(here.lease(undecodable).get("job_id"), _state(here, undecodable)),
        )
        yield Expectation.equal(
            "and a new job on it is refused",
            expected=False,
            saw=isinstance(here.ask(["x", "y"], undecodable.subject), Created),
        )


SCENARIO: Final = Scenario(
    "terminal-cleanup",
    "Clean-up that failed brings the message back; only then is the message deleted.",
    run,
    control,
)


# --- a stored list ----------------------------------------------------------------------------


def _list_is_deleted(bench: Bench, here: Site) -> Iterator[Expectation]:
    job, down, looked = _listed(here), Down(TRIES), Event()
    order: list[int] = []

    def before() -> None:
        down()
        looked.wait(WITHIN)
        order.append(len(here.bulk.deleted))

    broken = replace(here.world, payloads=here.payloads(before))
    with bench.steps.step("Deleting a finished job's list, which fails at first"), slots(broken):
        here.until("the clean-up fails", lambda: down.over)
        ended = here.ended(job)
        yield Expectation.equal(
            "after the failure: the job, its list, its message",
            expected=(State.SUCCEEDED.value, True, 1),
            saw=(ended.state.value, _list_is_there(here, job), here.messages()),
        )
        looked.set()
        here.until("every message is gone", lambda: here.messages() == 0)
    yield Expectation.equal(
        "after the next delivery: its list, and messages deleted before that was",
        expected=(False, [0]),
        saw=(_list_is_there(here, job), order),
    )
    yield Expectation.equal("what is left to clean up", expected=False, saw=here.job(job).cleanup)


def _listed(here: Site) -> Job:
    """A job whose ids are stored beside it."""
    job = here.submit(here.load(LISTED, name=WIDE), "listed")
    if job.payload is None:
        raise AssertionError("its ids fit into the job")
    return job


def _list_is_there(here: Site, job: Job) -> bool:
    try:
        return bool(here.world.payloads.read(job.payload or "", 0, 1))
    except PayloadGone:
        return False


# --- a subject --------------------------------------------------------------------------------


def _subject_is_freed(bench: Bench, here: Site) -> Iterator[Expectation]:
    job, down = _undecodable(here), Down(TRIES)
    broken = _without_release(here, down)
    with bench.steps.step("Freeing a broken job's subject, which fails at first"), slots(broken):
        here.until("freeing fails", lambda: down.over)
        yield Expectation.equal(
            "a job that cannot be read, after the failure: its state, its subject's, its message",
            expected=(State.FAILED.value, job.id, 1),
            saw=(_state(here, job), here.lease(job).get("job_id"), here.messages()),
        )
        here.until("every message is gone", lambda: here.messages() == 0)
    again = here.ask(["x", "y"], job.subject)
    yield Expectation.equal(
        "after the next delivery a new job on the subject is taken",
        expected=True,
        saw=isinstance(again, Created),
    )


def _undecodable(here: Site) -> Job:
    """A job with a subject, whose item no longer is one."""
    job = here.submit(here.load(2, name="broken"), "broken")
    damage = Update(control_table.job_key(job.id), set={"params": 5})
    here.world.store.transact("damage", [damage])
    return job


def _state(here: Site, job: Job) -> object:
    return (here.world.store.get(control_table.job_key(job.id)) or {}).get("state")


def _without_release(here: Site, down: Down) -> World:
    """The same, where freeing a subject is refused for a while."""

    def carry(store: Store, action: str, writes: Sequence[Write]) -> None:
        if action == "release":
            down()
        store.transact(action, writes)

    return replace(here.world, store=here.store(carry))


def _drop_at_once(look: _DeliveryCheck) -> Finding:
    """The control's rule: a job that has ended needs no message."""
    item = look.world.store.get(control_table.job_key(look.pointer.job_id))
    if item is not None and item.get("state") in TERMINAL:
        return DeleteMessage("finished")
    return _find_out(look)


_find_out: Final = _DeliveryCheck.find_out

"""A job that takes several visibility periods keeps its message. The control: a heartbeat that
keeps the lease but forgets the message."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from threading import Event
from typing import Final
from unittest.mock import patch

from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.messages import message_for
from handlers.jobs.words.states import State

from .framework import Bench, Expectation, Scenario
from .site import BULK, CHUNK, Site, lines_of, site, slots
from .taps import carry_on, held, slow

PERIODS: Final = 4
CHUNKS: Final = 20
EXTENDED: Final = "redelivery_extended"


def run(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "visibility") as here:
        quiet_ids = here.load(CHUNKS * CHUNK, name="quiet")
        disturbed_ids = here.load(CHUNKS * CHUNK, name="disturbed")
        quiet, disturbed = here.submit(quiet_ids, "quiet"), here.submit(disturbed_ids, "disturbed")
        seconds, done = PERIODS * BULK.visibility, Event()
        # Neither job can have committed all of its chunks by then.
        world = replace(here.world, store=here.store(held(carry_on, CHUNKS - 1, done)))
        with (
            bench.steps.step(f"Running two jobs of {PERIODS} visibility periods"),
            slots(slow(world, seconds / len(quiet_ids)), 4),
        ):
            try:
                _disturb(here, disturbed)
                here.until("it is kept", lambda: here.bulk.extensions_of(quiet) > PERIODS)
            finally:
                done.set()
            ended = [here.ended(job) for job in (quiet, disturbed)]
            here.until("every message is gone", lambda: here.messages() == 0)
        yield from _kept(here, quiet)
        yield from _handed_over(here, disturbed)
        for job, ids in zip(ended, (quiet_ids, disturbed_ids), strict=True):
            yield from _done_once(here, job, ids)
        yield Expectation.equal("dead letters", expected=0, saw=here.dead_letters())


def control(bench: Bench) -> Iterator[Expectation]:
    """Only the one step of the heartbeat is left out; the lease is beaten as ever."""
    with site(bench, "visibility-control") as here:
        ids = here.load(CHUNKS * CHUNK)
        job = here.submit(ids, "forgotten")
        done = Event()
        world = replace(here.world, store=here.store(held(carry_on, 1, done)))
        with (
            patch.object(Heartbeat, "_keep_message", lambda _: None),
            bench.steps.step("The same without extending the message"),
            slots(world, 3),
        ):
            try:
                here.until("the message is dead", lambda: here.dead_letters() > 0)
                running = here.job(job)
            finally:
                done.set()
        receives = [delivery.receive_count for delivery in here.bulk.of(job)]
        yield Expectation.of(
            "the running job's message is received again and again",
            expected=f"up to {BULK.max_receive_count} times",
            saw=max(receives),
            ok=max(receives) == BULK.max_receive_count,
        )
        yield Expectation.equal(
            "and ends as a dead letter, while its job is",
            expected=(1, State.RUNNING.value),
            saw=(here.dead_letters(), running.state.value),
        )


SCENARIO: Final = Scenario(
    "visibility-heartbeat",
    "A job of several visibility periods keeps its message; a redelivery is kept hidden.",
    run,
    control,
)


def _disturb(here: Site, job: Job) -> None:
    """Deliver the running job again in both ways: another message, and the same one too early."""
    here.until("the job runs", lambda: here.job(job).state is State.RUNNING)
    here.world.queues[Lane.BULK].send([message_for(job)])
    here.until("the other message is handed over", lambda: _times(here, job) > 0)
    other = here.bulk.of(job)[1].receipt
    # Once by who received it, then by the heartbeat that knows it from the job.
    here.until("it is kept", lambda: here.bulk.extended.count(other) > 1)
    here.world.queues[Lane.BULK].set_visibility(here.bulk.of(job)[0].receipt, 0)
    here.until("the same message is handed over", lambda: _times(here, job) > 1)


def _times(here: Site, job: Job) -> int:
    return len(lines_of(here.log, job, EXTENDED))


def _kept(here: Site, job: Job) -> Iterator[Expectation]:
    receives = [delivery.receive_count for delivery in here.bulk.of(job)]
    yield Expectation.equal(
        "receives of the message of an undisturbed job", expected=[1], saw=receives
    )
    extensions = here.bulk.extensions_of(job)
    yield Expectation.of(
        f"extensions of it, one each {BULK.heartbeat:g} s",
        expected=f"more than {PERIODS}",
        saw=extensions,
        ok=extensions > PERIODS,
    )


def _handed_over(here: Site, job: Job) -> Iterator[Expectation]:
    begun = len(lines_of(here.log, job, "attempt_begun"))
    yield Expectation.equal("attempts of a job delivered three times", expected=1, saw=begun)
    yield Expectation.equal(
        "its deliveries that were kept hidden, neither failed nor deleted",
        expected=2,
        saw=_times(here, job),
    )


def _done_once(here: Site, job: Job, ids: list[str]) -> Iterator[Expectation]:
    yield Expectation.equal(
        f"the job on {job.subject}, and records changed other than once",
        expected=(State.SUCCEEDED.value, len(ids), 0),
        saw=(job.state.value, job.succeeded, sum(times != 1 for times in here.changes(ids))),
    )

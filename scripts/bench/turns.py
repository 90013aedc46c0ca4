"""What it costs that bulk jobs take turns, and how well a waiting job's start is foretold."""

from __future__ import annotations

import time
from dataclasses import replace
from secrets import token_hex
from statistics import median
from typing import Final

from fairlane_client import Client, NewJob
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.turns import FreeSlot
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.ports import World
from scripts.load.ledger import Ledger
from scripts.load.patience import Patience
from scripts.local.errors import LocalError

from .figures import Figure, at_least, in_turns
from .framework import Bench, Measured
from .jobs import created, load
from .place import Place

AT_LEAST: Final = 0.97
"""Of the throughput of jobs that take no turns."""
SLICES: Final = 10
"""Of a run, whatever the machine takes for it: so short that the jobs give way many times."""
USUAL_S: Final = 60.0
"""The slice of the settings: a hand-over comes once in it."""
TENANTS: Final = ("turns-0", "turns-1")
CHUNK: Final = 96
CHUNKS: Final = 30
"""Of each job."""
ROUNDS: Final = 4
WAITING: Final = 10
"""Jobs of one tenant, which has one slot."""
FORETOLD: Final = "foretold"
LOOK_S: Final = 0.2


def run(place: Place) -> Measured:
    world: World = replace(place.deployment().world, sinks={})
    rounds, count = place.rounds(ROUNDS), CHUNK * place.rounds(CHUNKS, 10)
    with place.steps.step("Loading records"):
        ids = {tenant: load(world, count, tenant) for tenant in TENANTS}
    shares: list[float] = []
    handed_over: list[int] = []
    with place.steps.step("Two jobs in turns, and one after the other", 2 * rounds + 1) as advance:

        def together(slice_s: float) -> float:
            seconds, over = _both(world, ids, slice_s)
            advance(1)
            if slice_s:
                handed_over.append(over)
            return seconds

        slice_s = together(0) / SLICES
        turns, plain = in_turns(lambda: together(slice_s), lambda: together(0), rounds)
    if not all(handed_over):
        raise LocalError("no job gave way in a run, so nothing was measured")
    for with_turns, without, over in zip(turns, plain, handed_over, strict=True):
        lost = max(0.0, with_turns - without) / over
        shares.append(USUAL_S / (USUAL_S + lost))
    expected = _foretold(place)
    return Measured(
        figures=(
            Figure.of(
                f"records/s with turns of {USUAL_S:.0f} s ÷ without turns",
                shares,
                bound=at_least(AT_LEAST),
            ),
            Figure.of("expected ÷ real wait of waiting jobs", expected),
        ),
        facts={"hand-overs of a run": median(handed_over)},
    )


BENCH: Final = Bench(
    "turns",
    "Two bulk jobs that take turns beside the same two one after the other",
    run,
)


def _both(world: World, ids: dict[str, list[str]], slice_s: float) -> tuple[float, int]:
    """Seconds in which one slot works through a job of each tenant, and its hand-overs."""
    timed = replace(world, timing=world.timing.model_copy(update={"slice": slice_s}))
    jobs = [created(timed, ids[tenant], tenant) for tenant in TENANTS]
    start, attempts, slot = time.perf_counter(), 0, FreeSlot()
    while any(not _now(timed, job).state.terminal for job in jobs):
        for delivery in timed.queues[Lane.BULK].receive(1, 20):
            decision = on_message(timed, delivery, Worker(f"bench-{attempts}", slot=slot))
            apply_decision(timed.queues[Lane.BULK], delivery, decision)
            attempts += 1
    return time.perf_counter() - start, max(0, attempts - len(jobs))


def _now(world: World, job: Job) -> Job:
    found = read_job(world, job.id)
    if found is None:
        raise LocalError(f"the job {job.id} is gone")
    return found


def _foretold(place: Place) -> list[float]:
    """Of each waiting job of a tenant with one slot: the wait it was told, by the real one."""
    with place.steps.step("Loading records"):
        ids = load(place.deployment().world, CHUNK * place.rounds(CHUNKS, 10), FORETOLD)
    stack = place.serving()
    ledger = Ledger(stack)
    told: dict[str, tuple[int, int]] = {}
    with (
        Client(stack.api.url, stack.issuer.token(FORETOLD)) as client,
        place.steps.step("Jobs that wait, and when they start"),
    ):
        jobs = [_waiting(client, ids) for _ in range(place.rounds(WAITING, 8))]
        patience = Patience()
        while not all((rows := ledger.jobs())[id_].state.terminal for id_ in jobs):
            if not patience.lasts({(row.id, row.state, row.position) for row in rows.values()}):
                raise LocalError("no job of the bench moves")
            for id_ in jobs:
                if id_ in told:
                    continue
                # Before the request: the API's clock is read after it, the job starts after that.
                asked = int(time.time() * 1000)
                waits = client.get(id_).waiting
                if waits is not None and waits.expected_start is not None:
                    told[id_] = (asked, round(waits.expected_start.timestamp() * 1000))
            time.sleep(LOOK_S)
    starts = {id_: rows[id_].started_at or 0 for id_ in told}
    return [(at - asked) / max(1, starts[id_] - asked) for id_, (asked, at) in told.items()]


def _waiting(client: Client, ids: list[str]) -> str:
    return client.submit(
        NewJob(
            operation="adjust_number",
            subject=token_hex(8),
            ids=ids,
            params={"field": "n", "add": 1},
        )
    ).id

"""Between workers, functions and AWS, requests and replies are dropped, late, repeated and cut;
every record is changed exactly once, and nothing is left behind. The control: a worker
that adds to records without a condition and leaves trying again to the AWS library, on the same
wire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from random import Random
from typing import Final

from handlers.jobs.words.job import Lane
from scripts.local.stack import LocalStack

from .chaos import CHAOS, LOOK_S, TENANTS, Jobs
from .crash import Leftovers, all_done, drain, exactly_once, nothing_left
from .framework import Bench, Expectation, Information, Scenario, Seen
from .rough_wire import SHARE, Trouble, Wire, wire
from .site import Site, stand_still

SEED: Final = 4711
WORKERS: Final = 2
LEAST: Final = 8
"""Requests of each kind of trouble before no more jobs come."""
MOST_S: Final = 600
"""What has not met that by then never will."""
TROUBLED_LOOKS: Final = 8
"""Of half a second, between two calm moments."""
CONTROL_RECORDS: Final = 400


def run(bench: Bench) -> Iterator[Seen]:
    with bench.stack("wire", settings=CHAOS, workers=0, records=False) as stack:
        jobs = Jobs(stack, Random(SEED))  # noqa: S311  repeatable
        jobs.load()
        before = jobs.ledger.records(TENANTS)
        with wire(_ports(stack), SEED) as rough:
            _through(stack, rough)
            stack.workers.start(WORKERS, env=rough.environment)
            with bench.steps.step("Jobs on a wire that loses, delays, repeats and cuts"):
                _troubled(jobs, rough)
            with bench.steps.step("Seeing every job to its end"):
                drain(jobs, stack)
            jobs.look()
            stack.workers.stop()
        for trouble in SHARE:
            seen = rough.happened(trouble)
            yield Expectation.of(
                f"requests of workers and functions that were {trouble}",
                expected=f"at least {LEAST}",
                saw=seen,
                ok=seen >= LEAST,
            )
        lanes = {lane: sum(ran.row.lane is lane for ran in jobs.ran()) for lane in Lane}
        yield Information(
            what="jobs on that wire",
            beside=f"{rough.happened(Trouble.NONE)} requests were passed on",
            saw=", ".join(f"{lane}: {count}" for lane, count in lanes.items()),
        )
        yield from all_done(jobs.ran())
        yield exactly_once(before, jobs)
        yield from nothing_left(Leftovers.of(stack))


def control(bench: Bench) -> Iterator[Seen]:
    with bench.stack("wire-blind", settings=CHAOS, workers=0, records=False) as stack:
        stand_still(stack)
        here = Site(stack, "blind")
        ids = here.load(CONTROL_RECORDS, name="blind")
        job = here.submit(ids, "blind")
        with wire(_ports(stack), SEED) as rough, rough.trouble():
            stack.workers.start(env=rough.environment, module="scripts.verify.blind")
            with bench.steps.step("A worker that adds without a condition, on that wire"):
                here.ended(job)
            stack.workers.stop()
        twice = sum(times > 1 for times in here.changes(ids))
        yield Expectation.of(
            "records that were changed more than once",
            expected="at least 1",
            saw=twice,
            ok=twice > 0,
        )


SCENARIO: Final = Scenario(
    "wire",
    "Lost, late, repeated and cut requests and replies: every record exactly once, nothing left.",
    run,
    control,
)


def _ports(stack: LocalStack) -> dict[str, int]:
    state = stack.folder.read()
    return {"dynamodb": state.database_port, "sqs": state.port, "s3": state.port}


def _through(stack: LocalStack, rough: Wire) -> None:
    """Send the deployed functions through the doors, too."""
    lambda_ = stack.clients.lambda_
    for function in lambda_.list_functions()["Functions"]:
        known = function.get("Environment", {}).get("Variables", {})
        lambda_.update_function_configuration(
            FunctionName=function["FunctionName"],
            Environment={"Variables": {**known, **rough.environment}},
        )


def _troubled(jobs: Jobs, rough: Wire) -> None:
    """Until each kind of trouble has come often enough. Jobs are submitted in calm moments: what a
    client sees of a lost reply is the API's, and has tests of its own."""
    start = time.monotonic()
    while any(rough.happened(trouble) < LEAST for trouble in SHARE):
        if time.monotonic() - start > MOST_S:
            return  # what has not happened is told by the expectations
        jobs.top_up()
        with rough.trouble():
            for _ in range(TROUBLED_LOOKS):
                time.sleep(LOOK_S)

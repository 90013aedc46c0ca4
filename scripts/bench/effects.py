"""A bulk job with a search index beside the same job without one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

from handlers.aws.search_mapping import index_body
from handlers.bootstrap import sinks_of
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Lane
from handlers.jobs.words.ports import World
from handlers.jobs.words.record_schema import RecordSchema
from handlers.jobs.words.states import State
from handlers.settings import EffectSettings
from scripts.local.errors import LocalError
from scripts.opensearch.embedded import EmbeddedSearch

from .figures import Figure, at_least, in_turns
from .framework import Bench, Measured
from .jobs import load, queued
from .place import Place

PROMISED: Final = 0.75
"""Of the throughput without effects, where a processor is free: the effects are a second stream of
work, and on a machine whose processors are all taken it costs what it takes."""
AT_LEAST: Final = 0.4
"""What holds there, too."""
CHUNK: Final = 96
CHUNKS: Final = 20
ROUNDS: Final = 8


def run(place: Place) -> Measured:
    here = place.deployment()
    rounds, chunks = place.rounds(ROUNDS, 2), place.rounds(CHUNKS, 5)
    with place.steps.step("Loading records"):
        ids = load(here.world, CHUNK * chunks)
    with _index(place.quiet().folder.path) as url:
        sinks = sinks_of(EffectSettings(search_url=url), RecordSchema(), here.world.runtime)
        world: World = replace(here.world, sinks=sinks)
        plain: World = replace(here.world, sinks={})
        with place.steps.step("Jobs with and without effects", 2 * rounds + 2) as advance:

            def rate(of: World) -> float:
                seconds = _job(of, ids)
                advance(1)
                return len(ids) / seconds

            rate(world)  # connections, imports, and documents to be written over
            rate(plain)
            with_, without = in_turns(lambda: rate(world), lambda: rate(plain), rounds)
    figure = Figure.of(
        "records/s with a search index ÷ without",
        with_,
        without,
        bound=at_least(AT_LEAST),
        aim=at_least(PROMISED),
    )
    return Measured(
        figures=(figure,),
        facts={
            "records/s with a search index": median(with_),
            "records/s without": median(without),
        },
    )


BENCH: Final = Bench("effects", "A bulk job with a search index beside the same without one", run)


@contextmanager
def _index(folder: Path) -> Iterator[str]:
    """The address of a search engine with an empty index."""
    with EmbeddedSearch(folder) as engine:
        with engine.client() as client:
            index = EffectSettings().search_index
            client.indices.create(index=index, body=index_body(RecordSchema(), {}))
        yield engine.url


def _job(world: World, ids: list[str]) -> float:
    """Seconds from receiving the job's message to its decision, effects included."""
    job, delivery = queued(world, ids)
    queue = world.queues[Lane.BULK]
    start = time.perf_counter()
    decision = on_message(world, delivery, Worker("bench"))
    seconds = time.perf_counter() - start
    apply_decision(queue, delivery, decision)
    now = read_job(world, job.id)
    if now is None or now.state is not State.SUCCEEDED:
        raise LocalError(f"a job of the bench did not succeed: {now}")
    return seconds

"""Who lost a subject does not work on it again, however late it wakes. The control: the same
without the condition on the lease."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from threading import Event
from typing import Final

from handlers.aws.runtime import SystemRuntime
from handlers.jobs.lifecycle.submit import Created
from handlers.jobs.words.job import EndReason, Job
from handlers.jobs.words.ports import Store
from handlers.jobs.words.states import State
from handlers.jobs.words.timing import ms
from handlers.jobs.words.writes import Check, Present, Table, Write

from .framework import Bench, Expectation, Scenario
from .site import CHUNK, Site, Took, dying, lines_of, site, slots
from .taps import Carry, carry_on, held

CHUNKS: Final = 8
BEFORE: Final = 2
"""Chunks that are committed before the holder changes."""
AHEAD: Final = 60
"""Seconds by which the clock of who asks for the swap is ahead."""


def run(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "fencing") as here:
        yield from _taken_over(bench, here)
        yield from swapped(bench, here, carry_on)


def control(bench: Bench) -> Iterator[Expectation]:
    with site(bench, "fencing-control") as here:
        swap = _Swap(here, "unfenced")
        with bench.steps.step("A swap that the old worker is not told of"):
            swap.perform(unfenced)
        twice = sum(times > 1 for times in here.changes(swap.ids))
        yield Expectation.of(
            "records that the old holder wrote after it had lost the subject",
            expected="at least one chunk of them",
            saw=swap.late,
            ok=swap.late >= CHUNK,
        )
        yield Expectation.of(
            "records that were written twice",
            expected=f"more than the {swap.before} it had written rightfully",
            saw=twice,
            ok=twice > swap.before,
        )


SCENARIO: Final = Scenario(
    "ownership-fencing",
    "Who lost a subject writes nothing more on it, however late it wakes.",
    run,
    control,
)


# --- taken over, then the old message ---------------------------------------------------------


def _taken_over(bench: Bench, here: Site) -> Iterator[Expectation]:
    ids = here.load(CHUNKS * CHUNK, name="taken")
    old = here.submit(ids, "taken-over")
    with bench.steps.step("A worker dies, and its job's subject is taken over"):
        with slots(dying(here, BEFORE)):
            here.until("its worker is dead", lambda: here.died)
        before = here.job(old).position
        takers: list[Job] = []
        here.until("the subject can be taken", lambda: _taken(here, ids, old, takers))
        # Only now does anybody receive, so that the old message comes back after the takeover.
        with slots(here.world, 2):
            ended = here.ended(takers[0])
            here.until("every message is gone", lambda: here.messages() == 0)
    received = [delivery.receive_count for delivery in here.bulk.of(old)]
    yield Expectation.of(
        "the old job's message came back",
        expected="at least a second receive",
        saw=received,
        ok=max(received) > 1,
    )
    after = here.job(old)
    yield Expectation.equal(
        "the old job: its state and reason, its attempts, its position since its worker died",
        expected=(State.FAILED.value, EndReason.TAKEN_OVER.value, 1, before),
        saw=(after.state.value, str(after.end_reason), _begun(here, old), after.position),
    )
    yield Expectation.equal(
        "the new job, and records changed other than by each as far as it came",
        expected=(State.SUCCEEDED.value, 0),
        saw=(ended.state.value, _wrong(here, ids, before)),
    )


def _taken(here: Site, ids: Sequence[str], old: Job, takers: list[Job]) -> bool:
    outcome = here.ask(ids, old.subject)
    if isinstance(outcome, Created):
        takers.append(outcome.job)
    return bool(takers)


# --- swapped in mid-run -----------------------------------------------------------------------


class _Ahead(SystemRuntime):
    """A clock that is wrong by far more than ``clock_skew`` allows for."""

    def now(self) -> int:
        return super().now() + ms(AHEAD)


@dataclass
class _Swap:
    """The holder of a subject is replaced in the middle of its job, by the rules' own takeover,
    asked for by somebody whose clock is ahead. The old worker is alive and well."""

    here: Site
    name: str

    def __post_init__(self) -> None:
        self.ids = self.here.load(CHUNKS * CHUNK, name=self.name)
        self.old = self.here.submit(self.ids, self.name)

    def perform(self, carry: Carry) -> None:
        """Run both jobs to their ends; the old one's worker writes through ``carry``. It is in the
        middle of a chunk when its subject goes to another, and wakes when that has happened."""
        here, old, gone = self.here, self.old, Event()
        store = here.store(held(carry, BEFORE, gone))
        with slots(replace(here.world, store=store), name="old"):
            try:
                here.until("the old job is on its way", self._on_its_way)
                taken = here.ask(self.ids, old.subject, replace(here.world, runtime=_Ahead()))
                if not isinstance(taken, Created):
                    raise Took("the subject could not be taken")
                self.before = here.job(old).position
            finally:
                gone.set()
            with slots(here.world, name="new"):
                self.new = here.ended(taken.job)
                here.until("the old worker finds out", self._found_out)
                here.until("every message is gone", lambda: here.messages() == 0)

    @property
    def late(self) -> int:
        """Records the old holder wrote after it had lost the subject."""
        return self.here.job(self.old).position - self.before

    def _on_its_way(self) -> bool:
        return self.here.job(self.old).position >= BEFORE * CHUNK

    def _found_out(self) -> bool:
        return bool(lines_of(self.here.log, self.old, "ownership_lost"))


def swapped(bench: Bench, here: Site, carry: Carry) -> Iterator[Expectation]:
    """Judge a swap whose old worker writes through ``carry``."""
    swap = _Swap(here, "swapped")
    with bench.steps.step("A living worker loses its subject"):
        swap.perform(carry)
    yield Expectation.equal("records the old worker wrote after that", expected=0, saw=swap.late)
    yield Expectation.equal(
        "attempts of the old job, and its reason",
        expected=(1, EndReason.TAKEN_OVER.value),
        saw=(_begun(here, swap.old), str(here.job(swap.old).end_reason)),
    )
    yield Expectation.equal(
        "the new job, and records changed other than by each as far as it came",
        expected=(State.SUCCEEDED.value, 0),
        saw=(swap.new.state.value, _wrong(here, swap.ids, swap.before)),
    )


def unfenced(store: Store, action: str, writes: Sequence[Write]) -> None:
    """The old worker's writes without what says whose subject and whose turn it is."""
    if action in {"commit_chunk", "beat"}:
        writes = [_without_condition(write) for write in writes]
    store.transact(action, writes)


def _without_condition(write: Write) -> Write:
    if write.key.table is not Table.CONTROL:
        return write
    # A check needs a condition; this one always holds.
    return replace(write, when=(Present("fence"),) if isinstance(write, Check) else ())


def _begun(here: Site, job: Job) -> int:
    return len(lines_of(here.log, job, "attempt_begun"))


def _wrong(here: Site, ids: Sequence[str], before: int) -> int:
    """Both jobs change a record once: the old one the first ``before`` of them, the new one all."""
    expected = [2] * before + [1] * (len(ids) - before)
    return sum(a != b for a, b in zip(here.changes(ids), expected, strict=True))

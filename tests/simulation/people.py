"""The people and programs of a simulated world: clients, operators, another program that writes the
same records, and what befalls a dependency. Each act is one that the seed has planned."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from handlers.jobs.events.delivery import replay_event, undelivered_of_all
from handlers.jobs.lifecycle import control as verbs
from handlers.jobs.lifecycle.admission import admit_held
from handlers.jobs.lifecycle.dead_letters import read_letter, redrive
from handlers.jobs.lifecycle.dispatch import replay_dispatch, unsent_of_all
from handlers.jobs.lifecycle.replay_effects import open_effects_of_all, replay_effects, replay_one
from handlers.jobs.lifecycle.retry_failed import retry_failed
from handlers.jobs.lifecycle.submit import Created, submit
from handlers.jobs.selection.request import Accepted
from handlers.jobs.storage.transaction import Indeterminate
from handlers.jobs.transitions.quotas import set_most_active, set_slots
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.writes import Key, Put, Table, Update

from . import outside
from .items import OVER, int_of, slots_key
from .selecting import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from handlers.jobs.words.ports import World
    from handlers.jobs.words.writes import Item

    from .extras import Outage
    from .scenario import Scenario
    from .selecting import Query

MOST_IDS: Final = 30
RECLASSIFIED: Final = 40
"""Records that another program makes what other queries select, where jobs have queries."""
DAMAGED_IN: Final = frozenset({"QUEUED", "RUNNING", "PAUSING", "CANCELLING"})
NOT_DECODABLE: Final = (("retries", "many"), ("created_at", "lately"), ("worked_ms", "long"))
"""Attributes of a job's item with a value of the wrong kind."""


@dataclass
class Request:
    """One create, and what its client was told."""

    number: int
    ids: tuple[str, ...]
    answer: str = "none"
    job_id: str | None = None
    repeats: list[Request] = field(default_factory=list)
    """Further tries with the same key, each with its own answer."""
    asked_at: int = 0
    query: Query | None = None
    """What selects its records instead of its ids."""
    bad_file: bool = False
    """Its ids are in a file with a line that is none."""


@dataclass(frozen=True)
class People:
    """Those of one scenario, with its dice."""

    here: Scenario

    # --- extras -------------------------------------------------------------------------------

    def plan(self) -> None:
        span = self.here.calm_at - self.here.hub.now
        for outage in self.here.extras.outages:
            self.here.hub.after(outage.after * span, partial(self._whole_outage, outage))
        for _ in range(self.here.extras.stuck):
            self.here.hub.after(self.here.extras.random.random() * span, self._stick)
        self.here.hub.after(self.here.extras.random.random() * span, self.replay)
        for _ in range(self.here.extras.retries):
            self.here.hub.after(self.here.extras.random.random() * span, self._retry_failed)
        for _ in range(self.here.extras.damages):
            self.here.hub.after(self.here.extras.random.random() * span, self._damage)
        if self.here.extras.redrives and self.here.extras.wide:
            self.here.hub.after(self.here.extras.random.random() * span, self.redrive)
        for _ in range(self.here.extras.stops):
            self.here.hub.after(self.here.extras.random.random() * span, self._stop_tenant)
        for _ in range(RECLASSIFIED if self.here.extras.by_query else 0):
            self.here.hub.after(self.here.selecting.random.random() * span, self._reclassify)
        if self.here.extras.by_file and self.here.selecting.random.random() < 0.2:
            when = self.here.selecting.random.random() * span
            self.here.hub.after(when, self.here.selecting.lose_one)
        if self.here.extras.removals:
            self.here.hub.after(0, self._make_again)

    def _whole_outage(self, outage: Outage) -> None:
        self.here.faults.down[outage.place] = self.here.hub.now + outage.lasts
        self.here.watch.seen[f"outage of {outage.place}"] += 1
        self.here.hub.note("goes down as a whole", outage.place)

    def _stick(self) -> None:
        """One key is refused to everybody for a while: a record, a job, a subject or a counter."""
        partition = self.here.extras.random.choice(
            sorted({key.pk for key in self.here.store.all_items()})
        )
        lasts = self.here.extras.random.choice((2000, 15_000, 60_000))
        self.here.faults.stuck[partition] = self.here.hub.now + lasts
        self.here.watch.seen["a key sticks"] += 1
        self.here.hub.note("sticks", partition)

    def _retry_failed(self) -> None:
        """A client has the failed records of an ended job tried again."""
        ended = [
            j for j in self.here.watch.jobs.values() if j["state"] in OVER and int_of(j, "failed")
        ]
        if not ended:
            return
        job = self.here.extras.random.choice(ended)
        tenant, id_ = str(job["tenant"]), str(job["id"])
        self.ask(f"retry-failed-{id_[-6:]}", partial(_retry_failed, tenant=tenant, job_id=id_))

    def _damage(self) -> None:
        """A job's item comes to hold what no version can decode."""
        live = [job for job in self.here.watch.jobs.values() if job["state"] in DAMAGED_IN]
        if not live:
            return
        job = self.here.extras.random.choice(live)
        name, value = self.here.extras.random.choice(NOT_DECODABLE)
        self.here.watch.damaged[str(job["id"])] = name
        key = Key(f"JOB#{job['id']}", "JOB")
        self.here.store.transact("damage", [Update(key, set={name: value})])
        self.here.watch.seen["damage"] += 1
        self.here.hub.note("cannot be decoded any more", (job["id"], name))

    def _stop_tenant(self) -> None:
        """An operator lets a tenant's new jobs of a lane wait."""
        tenant, _ = self.here.extras.random.choice(list(self.here.subjects))
        lane = self.here.extras.random.choice(list(Lane))
        self.here.watch.seen["a tenant is stopped"] += 1
        self.ask(f"stop-{tenant}", partial(_limit, tenant=tenant, lane=lane, limit=0))

    def let_go_on(self) -> None:
        """An operator lets stopped tenants go on, until none is stopped."""
        for tenant in sorted({tenant for tenant, _ in self.here.subjects}):
            for lane in Lane:
                if self.here.store.peek(slots_key(tenant, lane)).get("own_limit") == 0:
                    act = partial(_limit, tenant=tenant, lane=lane, limit=None)
                    self.ask(f"let-{tenant}-go-on", act)
        self.here.hub.after(7000, self.let_go_on)

    def _make_again(self) -> None:
        """Another program makes records again that a job has removed."""
        for (tenant, _), pool in self.here.subjects.items():
            for id_ in pool:
                key = Key(tenant, id_, Table.RECORDS)
                if (tenant, id_) in self.here.watch.removed and not self.here.store.peek(key):
                    self.here.store.transact("outside", [Put(key, self._fresh())])
                    if self.here.outside is not None:
                        self.here.outside.set(tenant, id_, 1, 0)
                    self.here.watch.removed.discard((tenant, id_))
                    # Another record now, though of the same id: a job may change it as well.
                    self.here.watch.changes[tenant, id_].append("made again")
                    self.here.watch.seen["made again"] += 1
        if not self.here.faults.off:
            # Soon, in a wide world: while the removal is on its way to the sink.
            soon = (20, 600) if self.here.extras.wide else (100, 9000)
            self.here.hub.after(self.here.extras.random.randint(*soon), self._make_again)

    def _fresh(self) -> Item:
        """A record that another program makes."""
        kind: Item = (
            {"kind": self.here.selecting.random.choice(KINDS)} if self.here.extras.by_query else {}
        )
        return {"n": 0, "version": 1, **kind}

    def replay(self) -> None:
        """An operator has what is parked tried again, until none is left."""
        self.ask("replay", _replay_outbox)
        if self.here.watch.damaged:
            # No client can ask for the effects of a job that cannot be decoded.
            self.ask("replay-effects", _replay_effects_of_all)
        for job in list(self.here.watch.jobs.values()):
            if job.get("effects_parked"):
                tenant, id_ = str(job["tenant"]), str(job["id"])
                self.ask(f"replay-{id_[-6:]}", partial(_replay, tenant=tenant, job_id=id_))
        if self.here.faults.off:
            self.here.hub.after(7000, self.replay)

    def redrive(self) -> None:
        """An operator has every dead letter's job go on; in a wide world again and again."""
        process = self.here.process("operator")

        def redrive_all() -> None:
            world = self.here.world_of(process)
            for lane, dead in self.here.dead.items():
                letters = self.here.letters_of(process, lane)
                for delivery in dead.receive(10, 0):
                    self.here.watch.received[delivery.receipt] = self.here.hub.now
                    try:
                        done = redrive(world, letters, read_letter(world, delivery))
                    except FairlaneError as error:
                        self.here.hub.note("the operator was told", error)
                    else:
                        self.here.watch.seen[f"redriven: {done.fate}"] += 1

        self.here.hub.start(process, "redrive", redrive_all)
        if self.here.extras.wide:
            self.here.hub.after(20_000, self.redrive)

    # --- people -------------------------------------------------------------------------------

    def ask(self, what: str, act: Callable[[World], None]) -> None:
        process = self.here.process("api")

        def handle() -> None:
            act(self.here.world_of(process))

        self.here.hub.start(process, what, handle)
        self.here.hub.after(29_000, partial(self.here.workers.kill, process, "API time-out"))

    def create(self, again: int = 5) -> None:
        (tenant, subject), pool = self.here.random.choice(list(self.here.subjects.items()))
        request = Request(len(self.here.requests), self._choose(pool), asked_at=self.here.hub.now)
        self.here.requests.append(request)
        repeats = self.here.extras.repeats()
        key = f"key {request.number}" if repeats else None
        accepted = Accepted(
            operation="bump",
            subject=subject,
            params="{}",
            **self._selection(tenant, request),
            duplicates=0,
            tolerated_failure_percent=self.here.random.choice((100, 5)),
            labels={"request": str(request.number)},
            notify=self.here.random.choice((None, None, "https://example.org/jobs")),
        )

        def create(world: World, request: Request = request) -> None:
            try:
                outcome = submit(world, tenant, accepted, idempotency=key)
            except Indeterminate:
                request.answer = "unsettled"
            except FairlaneError:
                request.answer = "error"
            else:
                created = isinstance(outcome, Created)
                request.answer = "created" if created else "busy"
                if isinstance(outcome, Created):
                    request.job_id = outcome.job.id
            self.here.hub.note("told the client", request.answer)
            if request.answer != "created" and again and not self.here.faults.off and not repeats:
                self.here.hub.after(
                    self.here.random.random() * 9000, partial(self.create, again - 1)
                )

        self.ask(f"create-{request.number}", create)
        for repeat in repeats:
            request.repeats.append(Request(request.number, request.ids))
            again_ = partial(create, request=request.repeats[-1])
            self.here.hub.after(repeat.after, partial(self.ask, f"again-{request.number}", again_))

    def _selection(self, tenant: str, request: Request) -> Mapping[str, Any]:
        """How the request says which records it means."""
        extras, selecting = self.here.extras, self.here.selecting
        if extras.by_query and selecting.random.random() < extras.by_query:
            return selecting.by_query(request)
        if extras.by_file and selecting.random.random() < extras.by_file:
            return selecting.by_file(self.here.present(), tenant, request)
        return {"ids": request.ids}

    def _choose(self, pool: list[str]) -> tuple[str, ...]:
        if self.here.extras.crowded:
            return tuple(pool)
        ids = self.here.random.sample(pool, self.here.random.randint(1, len(pool)))
        if self.here.random.random() < 0.4:
            ids += self.here.random.choices(ids, k=self.here.random.randint(1, 4))
            if self.here.random.random() < 0.5:
                self.here.random.shuffle(ids)
        return tuple(ids[:MOST_IDS])

    def control(self, id_: str | None = None) -> None:
        jobs = [job for job in self.here.watch.jobs.values() if id_ in {None, job["id"]}]
        if not jobs or self.here.faults.off:
            return
        live = [job for job in jobs if job["state"] not in OVER]
        job = self.here.random.choice(live if live and self.here.random.random() < 0.7 else jobs)
        id_, tenant = str(job["id"]), str(job["tenant"])
        name = self.here.random.choice(self._verbs(str(job["state"])))
        act = getattr(verbs, name)
        self.here.asked[id_].add(name)

        def ask(world: World) -> None:
            try:
                answer = act(world, tenant, id_)
            except FairlaneError as error:
                answer = error
            said = answer.state.value if isinstance(answer, Job) else type(answer).__name__
            self.here.hub.note(f"told the client about {name}", said)

        self.ask(f"{name}-{id_[-6:]}", ask)

    def meddle(self, id_: str, state: str) -> None:
        """Somebody who watches the job and acts on what becomes of it."""
        likely = self.here.meddling * (3 if state == "FAILED" else 1)
        if not self.here.faults.off and self.here.random.random() < likely:
            soon = self.here.random.choice((5, 500, 5000)) * self.here.random.random()
            self.here.hub.after(soon, partial(self.control, id_))
        if not self.here.faults.off and self.here.random.random() < self.here.faults.duplicates:
            soon = self.here.random.choice((5, 500)) * self.here.random.random()
            self.here.hub.after(soon, partial(self._deliver_early, id_))

    def _deliver_early(self, id_: str) -> None:
        """A standard queue delivers a message in flight once more, now and then."""
        for queue in self.here.queues.values():
            for message in queue._stored.values():
                if id_ in message.body:
                    message.visible_at = min(message.visible_at, self.here.hub.now)
                    self.here.watch.early.add(message.message_id)
        self.here.hub.note("delivered early", id_[-6:])

    def _verbs(self, state: str) -> tuple[str, ...]:
        """Mostly what makes sense, sometimes anything."""
        if self.here.random.random() < 0.2:
            return ("cancel", "pause", "resume", "retry")
        return {
            "PAUSED": ("resume", "resume", "cancel"),
            "FAILED": ("retry",),
        }.get(state, ("cancel", "pause", "pause"))

    def choose_limits(self) -> None:
        """An operator gives a tenant limits of its own, or takes them back."""
        tenant, _ = self.here.random.choice(list(self.here.subjects))
        lane = self.here.random.choice((*Lane, None))
        limit = self.here.random.choice((1, 2, 3, None))

        if lane is None:
            self.ask(f"limit-{tenant}", partial(_limit_active, tenant=tenant, limit=limit))
        else:
            act = partial(_limit, tenant=tenant, lane=lane, limit=limit)
            self.ask(f"limit-{tenant}-{lane}", act)

    def write_outside(self) -> None:
        """Somebody else's program writes a record, as it always has."""
        (tenant, _), pool = self.here.random.choice(list(self.here.subjects.items()))
        self._write(tenant, self.here.random.choice(pool), {"o": self.here.hub.now})

    def _reclassify(self) -> None:
        """The same, and other queries select the record from here on."""
        dice = self.here.selecting.random
        (tenant, _), pool = dice.choice(list(self.here.subjects.items()))
        self._write(tenant, dice.choice(pool), {"kind": dice.choice(KINDS)})

    def _write(self, tenant: str, id_: str, fields: Item) -> None:
        key = Key(tenant, id_, Table.RECORDS)
        item = self.here.store.peek(key)
        if not item:
            return
        version = int_of(item, "version") + 1
        self.here.store.transact("outside", [Put(key, {**item, **fields, "version": version})])
        if self.here.outside is not None:
            self.here.outside.set(key.pk, key.sk, *outside.about(self.here.store.peek(key)))
        self.here.hub.note("outside write", key.sk)

    def go_down(self) -> None:
        """A dependency fails for everybody, for longer than a chunk's own retries last."""
        what = self.here.random.choice(("read records", "read payload", "commit_chunk", "query"))
        lasts = self.here.random.choice((4000, 15_000, 60_000))
        self.here.faults.down[what] = self.here.hub.now + self.here.random.randint(2000, lasts)
        self.here.hub.note("goes down", what)

    def fall_behind(self) -> None:
        """A lane serves nobody for a while: its messages come late."""
        lane = self.here.random.choice(list(Lane))
        self.here.behind[lane] = self.here.hub.now + self.here.random.randint(5000, 60_000)
        self.here.hub.note("falls behind", lane.value)

    def lose_payload(self) -> None:
        if names := sorted(self.here.payloads.names()):
            name = self.here.random.choice(names)
            self.here.payloads.delete(name)
            self.here.payload_lost.add(name)
            self.here.hub.note("payload lost", name)


def _limit(world: World, *, tenant: str, lane: Lane, limit: int | None) -> None:
    try:
        set_slots(world, tenant, lane, limit)
        admit_held(world, tenant, lane)
    except FairlaneError as error:
        world.telemetry.log("limit_not_set", why=str(error))


def _limit_active(world: World, *, tenant: str, limit: int | None) -> None:
    try:
        set_most_active(world, tenant, limit)
    except FairlaneError as error:
        world.telemetry.log("limit_not_set", why=str(error))


def _retry_failed(world: World, *, tenant: str, job_id: str) -> None:
    try:
        retry_failed(world, tenant, job_id, lambda: False)
    except FairlaneError as error:
        world.telemetry.log("retry_failed_left", error=error)
    else:
        world.telemetry.log("retry_failed_asked")


def _replay_outbox(world: World) -> None:
    """Parked events and messages, as ``fairlane events replay`` and ``dispatches replay`` do."""
    try:
        for undelivered in undelivered_of_all(world):
            if undelivered.parked:
                replay_event(world, undelivered.event)
        for unsent in unsent_of_all(world):
            if unsent.parked:
                replay_dispatch(world, unsent)
    except FairlaneError as error:
        world.telemetry.log("replay_failed", error=error)


def _replay_effects_of_all(world: World) -> None:
    """As ``fairlane effects replay`` does."""
    try:
        for each in open_effects_of_all(world):
            if each.effect.parked:
                replay_one(world, each.effect)
    except FairlaneError as error:
        world.telemetry.log("replay_failed", error=error)


def _replay(world: World, *, tenant: str, job_id: str) -> None:
    try:
        replay_effects(world, tenant, job_id)
    except FairlaneError as error:
        world.telemetry.log("replay_failed", error=error)

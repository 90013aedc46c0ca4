"""Recovery mends what crashes left behind: it finds items by time, and changes them by
conditional writes.

Every step looks at a bounded slice, and every item is claimed by the condition of the write that
handles it, so two runs at once do no harm.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from ..effects.rows import claim_effect, record_run
from ..effects.run import effect_of_item, run_effect
from ..events.delivery import EventDelivery
from ..storage import control_table
from ..storage.backlog import report_backlog
from ..storage.outbox import error_of
from ..storage.transaction import Rejected, Transaction, execute, retry_transient
from ..transitions.conditions import LEASE, owns_lease
from ..transitions.enqueue import dispatch_again
from ..transitions.finish import Ending
from ..transitions.quotas import NONE_HELD
from ..words.effect import EffectRun
from ..words.errors import OutcomeUnknown, Refused, Transient, Undecodable
from ..words.job import Job, Lane
from ..words.metrics import Metric
from ..words.states import State
from ..words.timing import ms
from ..words.writes import Equals, Index, Update, as_stored
from .admission import admit_held
from .cleanup import clean_up, release_if_held
from .dispatch import is_unsent, recover_dispatch, send_dispatch
from .finish import end_job, out_of_attempts, pause_job
from .silence import world_of_run
from .undecodable import UndecodableResult, end_undecodable, readable_fence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..words.job import Lease
    from ..words.ports import World
    from ..words.writes import Found, Item, Key

    Step: TypeAlias = Callable[[Found], bool]


@dataclass(frozen=True)
class Recovery:
    """One run. ``out_of_time`` is asked before each item."""

    world: World
    out_of_time: Callable[[], bool] = lambda: False

    def run(self) -> dict[str, int]:
        """Do every step; returns how many items each handled. Never raises for one bad item."""
        return replace(self, world=world_of_run(self.world))._run()  # noqa: SLF001  itself

    def _run(self) -> dict[str, int]:
        report_backlog(self.world)
        inside: dict[str, Step] = {
            control_table.DISPATCH: partial(recover_dispatch, self.world),
            control_table.LEASE: self._lease,
            control_table.ADMIT: self._admit,
            control_table.CLEANUP: self._cleanup,
        }
        handled = {kind: self._in_turns({kind: step})[kind] for kind, step in inside.items()}
        # What calls places outside comes last, and takes turns: one that hangs uses up the run.
        outside: dict[str, Step] = {
            control_table.EVENT: EventDelivery(self.world).deliver,
            control_table.EFFECT: self._effect,
        }
        handled |= self._in_turns(outside)
        self.world.telemetry.log("recovery_ran", **handled)
        return handled

    def _in_turns(self, steps: Mapping[str, Step]) -> dict[str, int]:
        """Do one item of each kind after another; returns how many of each were handled."""
        handled = dict.fromkeys(steps, 0)
        waiting = {kind: self._found(kind) for kind in steps}
        while waiting:
            for kind, items in list(waiting.items()):
                found = next(items, None)
                if found is None:
                    del waiting[kind]
                elif self.out_of_time():
                    return handled
                else:
                    handled[kind] += self._one(kind, found, steps[kind])
        return handled

    def _one(self, kind: str, found: Found, step: Step) -> bool:
        try:
            return step(found)
        except (Transient, Rejected, Undecodable) as error:
            self.world.telemetry.count(Metric.RECOVERY_ITEM_FAILURES)
            self._log("recovery_item_left", kind=kind, pk=found.key.pk, why=str(error))
        except Exception as error:  # noqa: BLE001  one item must not stop the others
            self.world.telemetry.count(Metric.RECOVERY_ITEM_FAILURES)
            self._log("recovery_item_crashed", kind=kind, pk=found.key.pk, error=error)
        return False

    def _found(self, kind: str) -> Iterator[Found]:
        """What is due of a kind, shard by shard."""
        for shard in range(self.world.due_shards):
            yield from self._due(kind, shard)

    def _due(self, kind: str, shard: int) -> list[Found]:
        """A slice of what is due, oldest first. Empty when the store can't be asked now."""
        world = self.world
        try:
            page = retry_transient(
                world,
                lambda: world.store.query(
                    Index.DUE,
                    control_table.due_partition(kind, shard),
                    up_to=world.runtime.now(),
                    limit=world.limits.recovery_slice,
                ),
            )
        except Transient as error:
            self._log("recovery_step_left", kind=kind, why=str(error))
            return []
        return list(page.found)

    # --- effects ----------------------------------------------------------------------------

    def _effect(self, found: Found) -> bool:
        """Run an effect that the worker did not finish, or that has to be tried again."""
        at = int(str(found.item[Index.DUE.sk]))
        effect = effect_of_item(found.item)
        lane = Lane(effect.lane)
        late = max(0, self.world.runtime.now() - at)
        self.world.telemetry.duration(Metric.EFFECT_AGE, late, lane=lane)
        claimed = claim_effect(self.world, effect, at)
        if claimed.tries > self.world.limits.max_effect_tries:
            # Runs were killed in their tries, and so none of them could park it.
            ran = EffectRun(effect.todo, (), error=error_of(found) or "its last try did not end")
        else:
            ran = run_effect(self.world, claimed)
        done = record_run(self.world, claimed, ran, lane)
        if done:
            self.world.telemetry.count(Metric.EFFECTS_DONE, lane=lane, operation=effect.operation)
        return done

    # --- leases -----------------------------------------------------------------------------

    def _lease(self, found: Found) -> bool:
        """A lease whose holder shows no life: dispatch the job again, finish its transition, or
        free the subject."""
        item = retry_transient(self.world, lambda: self.world.store.get(found.key))
        if item is None or item.get("job_id") is None or not self._is_due(item):
            return False
        job_id = str(item["job_id"])
        raw = retry_transient(
            self.world, lambda: self.world.store.get(control_table.job_key(job_id))
        )
        if raw is None:
            return self._free_orphan(found.key, item)
        try:
            lease, job = control_table.lease_of(item), control_table.job_of(raw)
        except Undecodable as error:
            result = end_undecodable(
                self.world,
                job_id,
                raw,
                str(error),
                lease_key=found.key,
                new_words=error.new_words,
            )
            return result is UndecodableResult.DONE
        if job.held:
            return self._held(found.key, item, job)
        if self._waits_for_its_message(job):
            self._look_later(found.key, item, job)
            return False
        return self._dead(job, lease)

    def _held(self, lease: Key, item: Item, job: Job) -> bool:
        """A held job waits for a slot, not for a message."""
        admitted = admit_held(self.world, job.tenant, job.lane)
        self._look_later(lease, item, job)
        return admitted > 0

    def _waits_for_its_message(self, job: Job) -> bool:
        """Whether the job's message is not lost, but could not be sent yet: another dispatch would
        be one more row that cannot be sent."""
        if job.state not in {State.QUEUED, State.RUNNING}:
            return False
        if job.state is State.RUNNING and self._out_of_attempts(job):
            return False
        return is_unsent(self.world, job)

    def _look_later(self, lease: Key, item: Item, job: Job) -> None:
        """Look at the job again after a while: otherwise many that wait could fill every slice, and
        hide the dead jobs behind them."""
        world = self.world
        later = Update(
            lease,
            set={Index.DUE.sk: world.runtime.now() + ms(world.timing.lost_after)},
            when=(*owns_lease(job), Equals(Index.DUE.sk, item[Index.DUE.sk])),
        )
        # An admission has moved the due time already.
        with suppress(Rejected):
            execute(world, Transaction("look_later", {LEASE: later}))

    def _is_due(self, item: Item) -> bool:
        at = item.get(Index.DUE.sk)
        return isinstance(at, int) and at <= self.world.runtime.now()

    def _dead(self, job: Job, lease: Lease) -> bool:
        expired = lease.expires_at is not None and lease.expires_at <= self.world.runtime.now()
        if job.state.terminal or job.state is State.SETTLING:
            release_if_held(self.world, job)
            return True
        if job.state is State.QUEUED:
            return self._dispatch_again(job, lease)
        if not expired:
            return False
        match job.state:
            case State.CANCELLING:
                end_job(self.world, job, Ending(State.CANCELLED, expired=lease))
            case State.PAUSING:
                pause_job(self.world, job, lease)
            case State.RUNNING if self._out_of_attempts(job):
                end_job(self.world, job, out_of_attempts(job, lease))
            case State.RUNNING:
                return self._dispatch_again(job, lease)
        return True

    def _out_of_attempts(self, job: Job) -> bool:
        return job.attempt >= self.world.timing.lane(job.lane).max_attempts

    def _dispatch_again(self, job: Job, lease: Lease) -> bool:
        transition = dispatch_again(self.world, job, lease)
        execute(self.world, transition.transaction)
        self.world.telemetry.count(Metric.JOBS_REDISPATCHED, lane=job.lane, operation=job.operation)
        self._log("dispatched_again", job_id=job.id, tenant=job.tenant, state=job.state.value)
        send_dispatch(self.world, transition.after)
        return True

    def _free_orphan(self, key: Key, lease: Item) -> bool:
        """Free a subject whose holder's item does not exist: no worker will ever release it."""
        free = Update(
            key,
            set=readable_fence(self.world, lease, {}),
            remove=("job_id", "expires_at", *control_table.NOT_DUE),
            when=(as_stored(lease, "job_id"), as_stored(lease, "fence")),
        )
        execute(self.world, Transaction("free_orphan", {LEASE: free}))
        self._log("orphan_freed", job_id=lease["job_id"], lease=key.pk)
        return True

    # --- held jobs --------------------------------------------------------------------------

    def _admit(self, found: Found) -> bool:
        """Admit held jobs, then look again later while a job is still held."""
        tenant, lane = str(found.item["tenant"]), Lane(str(found.item["lane"]))
        admitted = admit_held(self.world, tenant, lane)
        at = int(str(found.item[Index.DUE.sk]))
        item = retry_transient(self.world, lambda: self.world.store.get(found.key)) or {}
        held = int(str(item.get("held", 0)))
        if held > 0:
            later = self.world.runtime.now() + ms(self.world.timing.dispatch_grace)
            update = Update(found.key, set={Index.DUE.sk: later}, when=(Equals(Index.DUE.sk, at),))
        else:
            update = Update(
                found.key,
                remove=control_table.NOT_DUE,
                when=(Equals(Index.DUE.sk, at), *NONE_HELD),
            )
        try:
            self.world.store.transact("look_again", [update])
        except (Refused, OutcomeUnknown) as error:
            self._log("look_again_left", tenant=tenant, why=str(error))
        return admitted > 0

    # --- clean-up ---------------------------------------------------------------------------

    def _cleanup(self, found: Found) -> bool:
        job_id = str(found.item["id"])
        raw = retry_transient(
            self.world, lambda: self.world.store.get(control_table.job_key(job_id))
        )
        if raw is None:
            return False
        try:
            job = control_table.job_of(raw)
        except Undecodable as error:
            result = end_undecodable(self.world, job_id, raw, str(error), new_words=error.new_words)
            return result is UndecodableResult.DONE
        if not job.cleanup:
            return False
        clean_up(self.world, job)
        return True

    def _log(self, action: str, **fields: object) -> None:
        self.world.telemetry.log(action, **fields)

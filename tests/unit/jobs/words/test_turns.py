"""Whose turn it is in a full lane, over many rounds and in any order of the queue."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from handlers.jobs.words.turns import FADES, LEAD, OVERDUE, Share, Turns, Waiter

if TYPE_CHECKING:
    from collections.abc import Mapping

SLICE: Final = 60_000
NOW: Final = 1_700_000_000_000
ROUNDS: Final = 10


@dataclass
class Lane:
    """Slots that take jobs as the rules say, in virtual time; every job is endless."""

    slots: int
    tenants: Mapping[str, tuple[int, int]]
    """Name -> weight, jobs."""
    order: str = "first"
    sliced: bool = True
    longest: int = 0
    """ms that a job was passed over at most."""
    took: Counter[str] = field(default_factory=Counter)

    def run(self, slices: int, *, later: Mapping[str, int] | None = None) -> Mapping[str, float]:
        """The tenants' parts of the slots' time. later: after how many slices a tenant comes; only
        what is taken from then on counts."""
        later = later or {}
        random = Random(7)  # noqa: S311  repeatable
        begins = NOW + max((0, *later.values())) * SLICE
        shares = {name: Share(weight=weight) for name, (weight, _) in self.tenants.items()}
        waiting = [
            Waiter(f"{name}{n}", name, NOW + later.get(name, 0) * SLICE)
            for name, (_, jobs) in self.tenants.items()
            for n in range(jobs)
        ]
        running: list[tuple[int, int, Waiter]] = []
        now = NOW
        while now < NOW + slices * SLICE:
            here = [w for w in waiting if w.since <= now]
            while here and len(running) < self.slots:
                turns = Turns(SLICE, now, shares)
                offered = self._offered(here, random)
                job = next(
                    (j for j in offered if not turns.put_off(j, [w for w in here if w != j])), None
                )
                assert job is not None, "every waiting job is put off"
                here.remove(job)
                waiting.remove(job)
                self.longest = max(self.longest, now - job.since) if now > begins else 0
                running.append((now + SLICE + random.randint(0, 3000), now, job))
            running.sort(key=lambda each: each[0])
            now, since, job = running.pop(0)
            self.took[job.tenant] += max(0, now - max(since, begins))
            here = [w for w in waiting if w.since <= now]
            if self._gives_way(shares, job, since, now, here):
                waiting.append(Waiter(job.job_id, job.tenant, now))
            else:
                running.append((now + SLICE + random.randint(0, 3000), now, job))
        return {name: took / sum(self.took.values()) for name, took in self.took.items()}

    def _offered(self, here: list[Waiter], random: Random) -> list[Waiter]:
        match self.order:
            case "first":
                return list(here)
            case "last":
                return here[::-1]
            case _:
                return random.sample(here, len(here))

    def _gives_way(
        self, shares: dict[str, Share], job: Waiter, since: int, now: int, here: list[Waiter]
    ) -> bool:
        if not here or not self.sliced:
            return False
        here.sort(key=lambda waiter: waiter.since)
        used = min(now - since, now - here[0].since)
        shares[job.tenant] = Turns(SLICE, now, shares).charged(job.tenant, used)
        turns = Turns(SLICE, now, shares)
        for waiter in here:
            if (after := turns.caught_up(waiter.tenant, to=job.tenant)) is not None:
                shares[waiter.tenant] = after
        return Turns(SLICE, now, shares).gives_way(job.tenant, here)


@pytest.mark.parametrize("order", ["first", "last", "any"])
@pytest.mark.parametrize(
    ("slots", "tenants", "wanted"),
    [
        (1, {"many": (1, 10), "one": (1, 1)}, {"many": 1 / 2, "one": 1 / 2}),
        (2, {"many": (1, 10), "one": (1, 1)}, {"many": 1 / 2, "one": 1 / 2}),
        (1, {"heavy": (3, 2), "light": (1, 1)}, {"heavy": 3 / 4, "light": 1 / 4}),
        (1, {"heavy": (3, 1), "light": (1, 2)}, {"heavy": 3 / 4, "light": 1 / 4}),
        (2, {"heavy": (3, 10), "light": (1, 1)}, {"heavy": 3 / 4, "light": 1 / 4}),
        (3, {"a": (1, 10), "b": (1, 10), "c": (1, 10)}, {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
    ],
)
def test_shares_follow_the_weights_whatever_the_queues_order(
    slots: int, tenants: Mapping[str, tuple[int, int]], wanted: Mapping[str, float], order: str
) -> None:
    lane = Lane(slots, tenants, order)
    got = lane.run(ROUNDS * sum(weight for weight, _ in tenants.values()))
    assert got == {name: pytest.approx(part, rel=0.25) for name, part in wanted.items()}
    jobs = sum(jobs for _, jobs in tenants.values())
    assert lane.longest <= (OVERDUE + 1 + jobs / slots) * SLICE


def test_without_slices_the_first_job_keeps_its_slot() -> None:
    """The control of the shares above."""
    got = Lane(1, {"many": (1, 10), "one": (1, 1)}, sliced=False).run(ROUNDS * 2)
    assert got == {"many": 1.0}


def test_a_tenant_that_comes_late_has_no_savings() -> None:
    """Else it would have the lane to itself for as long as the others had worked before."""
    lane = Lane(1, {"old": (1, 2), "new": (1, 1)})
    got = lane.run(100 + ROUNDS * 2, later={"new": 100})
    assert got == {name: pytest.approx(0.5, rel=0.25) for name in ("old", "new")}
    assert lane.longest <= (LEAD + 3) * SLICE


# --- one decision -----------------------------------------------------------------------------


def turns(shares: Mapping[str, Share]) -> Turns:
    return Turns(SLICE, NOW, shares)


def waiter(tenant: str, slices: float = 1, job: str = "j") -> Waiter:
    return Waiter(job, tenant, NOW - round(slices * SLICE))


def test_a_share_fades_by_half() -> None:
    share = Share(used=SLICE, at=NOW - FADES * SLICE)
    assert turns({"t": share}).used("t") == SLICE / 2
    assert turns({"t": Share(SLICE, NOW, weight=2)}).used("t") == SLICE / 2
    assert turns({}).used("t") == 0


def test_a_charge_counts_by_weight_from_now() -> None:
    share = Share(used=2 * SLICE, at=NOW - FADES * SLICE, weight=3)
    charged = turns({"t": share}).charged("t", SLICE)
    assert charged == Share(used=2 * SLICE, at=NOW, weight=3, served_at=NOW)
    assert turns({"t": charged}).used("t") == pytest.approx(2 * SLICE / 3)


def test_a_job_gives_way_to_who_used_less_to_its_own_tenant_and_to_the_overdue() -> None:
    shares = {"me": Share(SLICE, NOW), "less": Share(SLICE - 1, NOW), "more": Share(2 * SLICE, NOW)}
    assert turns(shares).gives_way("me", [waiter("less")])
    assert not turns(shares).gives_way("me", [waiter("more")])
    assert turns(shares).gives_way("me", [waiter("me")])
    assert turns(shares).gives_way("me", [waiter("more", OVERDUE)])
    assert not turns(shares).gives_way("me", [waiter("more", OVERDUE - 0.01)])
    assert not turns(shares).gives_way("me", [])


def test_equal_shares_change_no_slot() -> None:
    equal = {"me": Share(SLICE, NOW), "other": Share(SLICE, NOW)}
    assert not turns(equal).gives_way("me", [waiter("other")])


def test_a_job_is_put_off_for_who_is_half_a_slice_behind_or_overdue() -> None:
    shares = {"me": Share(SLICE, NOW), "half": Share(SLICE // 2, NOW)}
    near = {**shares, "half": Share(SLICE // 2 + 1, NOW)}
    assert turns(shares).put_off(waiter("me"), [waiter("half")])
    assert not turns(near).put_off(waiter("me"), [waiter("half")])
    assert turns(near).put_off(waiter("me"), [waiter("half", OVERDUE)])
    assert not turns(shares).put_off(waiter("me", OVERDUE), [waiter("half", OVERDUE + 1)])
    served = {**shares, "half": Share(SLICE, NOW, served_at=NOW - SLICE)}
    assert not turns(served).put_off(waiter("me"), [waiter("half", OVERDUE)])


def test_a_tenants_own_jobs_take_turns_in_their_order() -> None:
    shares = {"me": Share(SLICE, NOW)}
    assert turns(shares).put_off(waiter("me", 1), [waiter("me", 2, "k")])
    assert not turns(shares).put_off(waiter("me", 1), [waiter("me", 1.99, "k")])
    assert turns(shares).put_off(waiter("me", OVERDUE), [waiter("me", OVERDUE + 1, "k")])


def test_a_waiting_tenant_is_brought_up_to_two_slices_behind() -> None:
    shares = {"me": Share(5 * SLICE, NOW), "idle": Share(weight=4), "near": Share(3 * SLICE, NOW)}
    assert turns(shares).caught_up("idle", to="me") == Share(12 * SLICE, NOW, weight=4)
    assert turns(shares).caught_up("near", to="me") is None

"""Scenarios of the protocol on a real queue and real tables, and that they can fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handlers.jobs.words.states import State
from scripts.checks.released.source import unpack_worker
from scripts.local.steps import Steps
from scripts.verify import ownership_fencing, payload_budget, terminal_cleanup, two_versions
from scripts.verify.crash import Leftovers
from scripts.verify.framework import Bench, Scenario, perform
from scripts.verify.site import PROTOCOL, site


@pytest.fixture(scope="module")
def bench(stacks: Path) -> Iterator[Bench]:
    with Bench(Steps(quiet=True), stacks) as made:
        yield made


@pytest.mark.parametrize(
    "scenario",
    [terminal_cleanup.SCENARIO, ownership_fencing.SCENARIO, payload_budget.SCENARIO],
    ids=lambda s: s.name,
)
def test_the_run_holds_and_the_control_shows_the_harm(bench: Bench, scenario: Scenario) -> None:
    report = perform(scenario, bench)
    seen = [each for part in report.parts for each in part.expectations]
    assert [each for each in seen if not each.ok] == []
    assert report.ok


def test_a_worker_without_its_condition_fails_ownership_fencing(bench: Bench) -> None:
    with site(bench, "unfenced") as here:
        seen = list(ownership_fencing.swapped(bench, here, ownership_fencing.unfenced))
    wrong = [each.what for each in seen if not each.ok]
    assert "records the old worker wrote after that" in wrong
    assert "the new job, and records changed other than by each as far as it came" in wrong


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A worker's code of the last release."""
    return unpack_worker(tmp_path_factory.mktemp("release"))


def test_a_worker_of_the_last_release_works_beside_this_one(bench: Bench, release: Path) -> None:
    seen = list(two_versions.run(bench, release))
    assert [each for each in seen if not each.ok] == []
    assert len(seen) == 6


def test_a_release_that_leaves_nothing_to_newer_workers_is_seen(
    bench: Bench, release: Path
) -> None:
    left, _ = two_versions.without_patience(bench, release)
    assert not left.ok
    assert State.FAILED in left.saw


def test_leftovers_are_found(bench: Bench) -> None:
    """A queued job holds a subject, a slot and a message."""
    with site(bench, "leftovers") as here:
        before = Leftovers.of(here.stack)
        here.submit(here.load(2), "left")
        after = Leftovers.of(here.stack)
        assert after.any
        assert after.subjects == before.subjects + 1
        assert after.slots == before.slots + 1
        assert after.messages == before.messages + 1


def test_parts_share_one_stack(bench: Bench) -> None:
    assert bench.shared("protocol", settings=PROTOCOL) is bench.shared(
        "protocol", settings=PROTOCOL
    )

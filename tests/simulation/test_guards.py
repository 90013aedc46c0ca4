"""The simulation sees each guard of the protocol when it is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from . import mutations, mutations_function, mutations_waits, mutations_world
from .scenario import SEEDS, run

if TYPE_CHECKING:
    from .watch import Violation

MUTATIONS: Final = {
    **mutations.MUTATIONS,
    **mutations_waits.MUTATIONS,
    **mutations_world.MUTATIONS,
    **mutations_function.MUTATIONS,
}

FOUND_BY: Final[dict[str, int]] = {
    "a dead letter is dropped without a fresh message": 181,
    "a dispatch row is dropped before its message is sent": 476,
    "a file is read up to a bad line": 157,
    "a function reports the first failure only": 39,
    "a held job is admitted whatever became of it": 156,
    "a job gives way to nobody": 33,
    "a job that a worker may run is ended as undecodable": 3785,
    "a job that gave way does not say so": 33,
    "a job waits for a retry that is due": 19,
    "a job waits minutes before its next try": 16,
    "a keyed request is not remembered": 8,
    "a look takes one page for all": 45,
    "a lost reply counts as not applied": 58,
    "a lost worker is not told of": 1,
    "a message is given up without a fresh one": 39,
    "a removed record wins over one made again": 1009,
    "a document is replaced though its record has changed": 222,
    "a record is written whatever its version": 54,
    "a record that no longer matches is changed": 5,
    "a resuming attempt ignores a beat in between": 79,
    "a slot stands free for ever": 1673,
    "a small function begins a bulk job": 3,
    "a stale clean up frees the subject": 3040,
    "a stopped tenant seems to be at its limit": 9,
    "a subject is given away twice": 1,
    "a takeover does not end the old job": 3,
    "a takeover ignores a holder that came back": 1043,
    "a tenant that was passed over is not next": 33,
    "a walk ends at a page that finds nothing": 1233,
    "an attempt concludes whatever it finds": 67,
    "an undecodable job is ended whatever became of it": 365,
    "an undecodable job keeps its slot": 1,
    "an undecodable job keeps its subject": 1,
    "dispatch numbers are used twice": 35,
    "letting go does not raise the fence": 943,
    "messages of finished jobs are deleted at once": 63,
    "no condition on the job when an attempt begins": 134,
    "no condition on the lease when an attempt begins": 79,
    "no fence check in the chunk commit": 1656,
    "no job gives way": 33,
    "no position check in the chunk commit": 979,
    "no slot stands free for who is next": 205,
    "no state check in the chunk commit": 8,
    "no state check when a client asks to stop": 81,
    "parked effects seem to be on their way": 271,
    "records the job carries already are changed again": 18,
    "slots are taken beyond the limit": 15,
    "stopping the heartbeat does not wait": 197,
}
"""Where to look first: a seed that saw it. When that seed sees it no more, all are asked."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_c81_a_missing_guard_is_seen(name: str) -> None:
    for seed in (FOUND_BY.get(name, 0), *range(SEEDS)):
        with MUTATIONS[name]():
            found = run(seed).violations
        if found:
            assert not [each for each in found if is_of_the_mutation(each)]
            print(f"{name}: seed {seed}: {found[0]}")  # noqa: T201  what pytest -rP is asked for
            return
    pytest.fail(f"{SEEDS} seeds do not see it")


def is_of_the_mutation(violation: Violation) -> bool:
    """A mutation that does not fit the code any more breaks it in a way no guard prevents."""
    return "TypeError" in violation.what or "AttributeError" in violation.what


def test_the_seeds_to_look_at_first_are_of_mutations() -> None:
    assert FOUND_BY.keys() <= MUTATIONS.keys()

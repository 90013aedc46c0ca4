"""The simulation sees each guard of the protocol when it is gone."""

from __future__ import annotations

from typing import Final

import pytest

from .mutations import MUTATIONS
from .scenario import run
from .test_seeds import SEEDS

FOUND_BY: Final[dict[str, int]] = {
    "a dispatch row is dropped before its message is sent": 160,
    "a held job is admitted whatever became of it": 122,
    "a lost reply counts as not applied": 204,
    "a resuming attempt ignores a beat in between": 1441,
    "a takeover does not end the old job": 3,
    "a takeover ignores a holder that came back": 58,
    "an attempt concludes whatever it finds": 92,
    "an ended job is ended again": 3,
    "letting go does not raise the fence": 916,
    "messages of finished jobs are deleted at once": 7,
    "no condition on the job when an attempt begins": 30,
    "no condition on the lease when an attempt begins": 1441,
    "no fence check in the chunk commit": 276,
    "no position check in the chunk commit": 3,
    "no state check in the chunk commit": 6,
    "slots are taken beyond the limit": 4,
    "stopping the heartbeat does not wait": 22,
}
"""Where to look first: a seed that saw it. When that seed sees it no more, all are asked."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_missing_guard_is_seen(name: str) -> None:
    hint = FOUND_BY.get(name, 0)
    for seed in (hint, *range(SEEDS)):
        with MUTATIONS[name]():
            found = run(seed).violations
        if found:
            print(f"{name}: seed {seed}: {found[0]}")  # noqa: T201  what pytest -rP is asked for
            return
    pytest.fail(f"{SEEDS} seeds do not see it")

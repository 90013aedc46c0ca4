"""The simulation sees each guard of the protocol when it is gone."""

from __future__ import annotations

from typing import Final

import pytest

from .mutations import MUTATIONS
from .scenario import run
from .test_seeds import SEEDS

FOUND_BY: Final[dict[str, int]] = {}
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

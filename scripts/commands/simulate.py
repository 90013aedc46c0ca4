"""``fairlane simulate`` and ``fairlane soak``.

The simulator lives with the tests, which are not part of the installed package: both commands are
for a checkout.
"""

from __future__ import annotations

import random
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .comparing import comparing
from .needs import in_checkout

if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK: Final = 50


@comparing()
def simulate(
    seed: Annotated[int, typer.Option(min=0, help="The seed; a seed is the same run every time.")],
) -> None:
    """Replay a seed of the simulation step by step. Exit status 1: broken rules; 2: trouble."""
    with in_checkout("simulate"):
        from tests.simulation.scenario import run  # noqa: PLC0415
        from tests.simulation.trace import render  # noqa: PLC0415
    found = run(seed)
    print(render(found))
    raise typer.Exit(1 if found.violations else 0)


@comparing()
def soak(
    runs: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 10_000,
    workers: Annotated[int, typer.Option(min=1, help="How many processes.")] = 2,
    start: Annotated[
        int | None, typer.Option(min=0, help="The first seed; random when left out.")
    ] = None,
) -> None:
    """Simulate seeds that no test has tried. Exit status 1: one breaks a rule; 2: trouble."""
    with in_checkout("soak"):
        import tests.simulation.scenario  # noqa: F401, PLC0415
    first = random.randrange(10**9) if start is None else start  # noqa: S311  no secret
    print(f"seeds {first} to {first + runs - 1}")
    blocks = [range(at, min(at + BLOCK, first + runs)) for at in range(first, first + runs, BLOCK)]
    failed = 0
    with ProcessPoolExecutor(workers) as pool:
        for broken in pool.map(_block, blocks):
            for seed, what in broken:
                failed += 1
                print(f"make simulate SEED={seed}  {what}", flush=True)
    print(f"{runs} runs, {failed} broke a rule")
    raise typer.Exit(1 if failed else 0)


def _block(seeds: Iterable[int]) -> list[tuple[int, str]]:
    from tests.simulation.scenario import run  # noqa: PLC0415

    found = ((seed, run(seed).violations) for seed in seeds)
    return [(seed, str(violations[0])) for seed, violations in found if violations]

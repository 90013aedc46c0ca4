"""Which tests run in one worker, one after another, which of these groups are begun first, and the
order of everything when that should be another one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pytest
    from _pytest.fixtures import FuncFixtureInfo

TESTS: Final = Path(__file__).parents[1]
TOGETHER: Final = frozenset({"infra"})
"""Folders whose tests share synthesised apps: each is one group."""
SHARED: Final = ("stack", "team")
"""Session fixtures of tests/e2e that take long. The files that use one are one group; each other
file of the folder is one of its own."""
ALONE: Final = frozenset({"simulation", "explorer"})
"""Folders whose tests share nothing and take seconds each: any worker takes any of them."""
FIRST: Final = (
    *("stack", "team", "test_bench", "test_verify_protocol", "e2e"),
    *("infra", "explorer", "simulation", "handlers", "contract"),
)
"""Groups and folders in the order they are begun in, the longest first, so that no worker is left
with a long one at the end. Everything else comes after them."""


def folder_of(path: Path) -> str:
    return path.relative_to(TESTS).parts[0]


def groups_of(items: Iterable[pytest.Item]) -> dict[Path, str]:
    """The group of each file that is in one."""
    used: dict[Path, set[str]] = defaultdict(set)
    for item in items:
        used[item.path] |= session_fixtures(item)
    groups = {}
    for path, fixtures in used.items():
        folder = folder_of(path)
        if folder in TOGETHER:
            groups[path] = folder
        elif folder == "e2e":
            groups[path] = next((name for name in SHARED if name in fixtures), path.stem)
        elif folder not in ALONE:
            groups[path] = str(path.relative_to(TESTS))
    return groups


def session_fixtures(item: pytest.Item) -> set[str]:
    """The names of those that the test uses, itself or through others."""
    info: FuncFixtureInfo | None = getattr(item, "_fixtureinfo", None)
    found = {} if info is None else info.name2fixturedefs
    return {name for name, fixtures in found.items() if fixtures[-1].scope == "session"}


def rank(path: Path, groups: Mapping[Path, str]) -> int:
    """How many come before it."""
    for name in (groups.get(path), folder_of(path)):
        if name in FIRST:
            return FIRST.index(name)
    return len(FIRST)


def shuffle(items: list[pytest.Item], seed: int) -> None:
    """The files in random order, and the tests of each file, in place: the same order for the same
    seed, so that each worker has it. A file's tests stay together, or what they share would be made
    anew for each of them."""
    random = Random(seed)  # noqa: S311  of an order, not of a secret
    places = {path: random.random() for path in sorted({item.path for item in items})}
    random.shuffle(items)
    items.sort(key=lambda item: places[item.path])

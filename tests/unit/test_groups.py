"""Tests that share something expensive run in one worker, and the longest are begun first."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.groups import TESTS, groups_of, rank, shuffle


def item(file: str, **fixtures: str) -> Any:
    """A collected test of that file that uses fixtures of these scopes."""
    found = {name: [SimpleNamespace(scope=scope)] for name, scope in fixtures.items()}
    return SimpleNamespace(path=TESTS / file, _fixtureinfo=SimpleNamespace(name2fixturedefs=found))


ITEMS = [
    item("unit/test_a.py", stack="session"),
    item("simulation/test_s.py"),
    item("infra/test_b.py", stack="session"),
    item("infra/test_c.py"),
    item("e2e/test_alone.py", stack="module"),
    item("e2e/test_both.py"),
    item("e2e/test_both.py", team="session", stack="session"),
    item("e2e/test_stack.py", stack="session"),
    item("e2e/test_team.py", team="session"),
    item("e2e/test_none.py"),
]


def test_files_that_share_a_fixture_are_one_group_and_others_each_one() -> None:
    assert {path.name: group for path, group in groups_of(ITEMS).items()} == {
        "test_a.py": "unit/test_a.py",
        "test_b.py": "infra",
        "test_c.py": "infra",
        "test_alone.py": "test_alone",
        "test_both.py": "stack",
        "test_stack.py": "stack",
        "test_team.py": "team",
        "test_none.py": "test_none",
    }


def test_the_longest_are_begun_first() -> None:
    groups = groups_of(ITEMS)
    ranked = sorted(ITEMS, key=lambda each: rank(each.path, groups))
    assert [each.path.stem for each in ranked] == [
        *("test_both", "test_both", "test_stack", "test_team", "test_alone", "test_none"),
        *("test_b", "test_c", "test_s", "test_a"),
    ]


def test_a_random_order_is_the_seeds_and_keeps_files_together() -> None:
    def order(seed: int) -> list[tuple[str, int]]:
        items = [item(f"unit/test_{name}.py") for name in "abcd" for _ in range(4)]
        numbers = {id(each): number for number, each in enumerate(items)}
        shuffle(items, seed)
        return [(each.path.stem, numbers[id(each)]) for each in items]

    orders = [order(seed) for seed in range(5)]
    assert orders == [order(seed) for seed in range(5)]
    assert len({tuple(each) for each in orders}) == 5
    for each in orders:
        assert sorted(number for _, number in each) == list(range(16))
        files = [list(of_one) for _, of_one in groupby(each, key=itemgetter(0))]
        assert len(files) == 4
        assert any(of_one != sorted(of_one) for of_one in files)
    assert any(each != sorted(each) for each in orders)


def test_the_command_keeps_to_the_seed_of_a_random_order(pytestconfig: pytest.Config) -> None:
    options = ["-p", "no:cacheprovider", "--collect-only", "-q", "--shuffle=1"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, __file__],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=True,
    )
    collected = list(dict.fromkeys(re.findall(r"::(test_\w+)", done.stdout)))
    written = re.findall(r"^def (test_\w+)", Path(__file__).read_text(), re.MULTILINE)
    assert sorted(collected) == sorted(written)
    assert collected != written


def test_an_item_that_is_no_function_uses_no_fixture() -> None:
    document: Any = SimpleNamespace(path=TESTS / "e2e" / "test_x.py")
    assert groups_of([document]) == {document.path: "test_x"}


@pytest.mark.parametrize(("distribution", "workers"), [("loadgroup", 1), ("load", 2)])
def test_workers_keep_to_the_groups(distribution: str, workers: int) -> None:
    """That pytest, xdist and the order of their hooks agree: when they do not, nothing fails, and
    each worker makes for itself what a group would share."""
    command = ["-n", "2", "--dist", distribution, "--no-loadscope-reorder", "-v", "-k", "not keep"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *command, __file__],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    used = re.findall(r"\[(gw\d)\] .*PASSED", done.stdout)
    assert len(used) == 3, done.stdout + done.stderr
    assert len(set(used)) == workers

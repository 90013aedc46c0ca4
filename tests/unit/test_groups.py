"""Tests that share something expensive run in one worker, and the longest are begun first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tests.support.groups import TESTS, groups_of, rank


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


def test_an_item_that_is_no_function_uses_no_fixture() -> None:
    document: Any = SimpleNamespace(path=TESTS / "e2e" / "test_x.py")
    assert groups_of([document]) == {document.path: "test_x"}

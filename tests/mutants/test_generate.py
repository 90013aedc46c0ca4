"""What is changed in a module, and what a mutant's key depends on."""

from __future__ import annotations

from textwrap import dedent

import pytest

from . import generate
from .generate import mutants_of

WRITE = """
def write(job, limit):
    if job.ended:
        return None
    return Update(job.key, when=(Equals("fence", job.fence), *owns_lease(job)))
"""


def changes(source: str) -> list[str]:
    return [mutant.what for mutant in mutants_of("m.py", dedent(source))]


def test_each_condition_and_each_guard_is_left_out() -> None:
    assert changes(WRITE) == [
        "never `if job.ended`",
        "without `Equals('fence', job.fence)`",
        "without `*owns_lease(job)`",
    ]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a):\n    return a < 3", ["`a < 3` as `a <= 3`"]),
        ("def f(a):\n    return a >= 3", ["`a >= 3` as `a > 3`"]),
        ("def f(a):\n    return Below('n', a)", ["`Below('n', a)` with AtMost"]),
        (
            "def f(a, b):\n    return a and b",
            ["`a and b` without `a`", "`a and b` without `b`"],
        ),
        ("def f(a):\n    if a:\n        a.go()", ["always `if a`"]),
        ("def f(job):\n    return g(when=job_as_read(job))", ["without all of `job_as_read(job)`"]),
        ("NONE: Final[When] = (Missing('held'),)", ["without `Missing('held')`"]),
        (
            "def f(item):\n    names = ('state', 'fence')",
            ["without `'state'`", "without `'fence'`"],
        ),
    ],
)
def test_a_comparison_is_moved_and_a_part_left_out(source: str, expected: list[str]) -> None:
    assert changes(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "def f(a):\n    return a or {}",
        "def f(a):\n    return a is None",
        "def f(a):\n    return (b := a) and (c := b)",
        "def f(world):\n    if world.slow:\n        world.telemetry.log('slow')",
        "if TYPE_CHECKING:\n    from .x import y",
        "def f(a: Literal['x'] = 'x') -> 'a < b':\n    return a",
    ],
)
def test_what_can_only_crash_or_only_reports_stays(source: str) -> None:
    assert changes(source) == []


def test_a_key_is_that_of_the_changed_definition_alone() -> None:
    before = {m.key for m in mutants_of("m.py", WRITE)}
    beside = (
        WRITE.replace("    return Upd", "    # why\n\n    return Upd") + "\ndef g():\n    pass\n"
    )
    assert {m.key for m in mutants_of("m.py", beside)} == before
    within = WRITE.replace("job.key", "job.subject")
    assert not {m.key for m in mutants_of("m.py", within)} & before
    assert not {m.key for m in mutants_of("n.py", WRITE)} & before


def test_equal_changes_of_one_function_are_numbered() -> None:
    source = "def f(a):\n    if a:\n        return 1\n    if a:\n        return 2"
    assert changes(source) == ["never `if a`", "never `if a` (2)"]


def test_the_rules_have_mutants_in_every_package() -> None:
    found = {module: generate.mutants(module) for module in generate.modules()}
    packages = {module.partition("/")[0] for module, mutants in found.items() if mutants}
    assert packages == {*generate.PACKAGES, "words"}
    keys = [mutant.key for mutants in found.values() for mutant in mutants]
    assert len(keys) == len(set(keys))

"""What counts as caught, which tests are chosen, and how a child's death is told."""

from __future__ import annotations

import ast
import os
import signal
from pathlib import Path
from typing import NoReturn

import pytest

from handlers.jobs.storage.transaction import Rejected
from handlers.jobs.transitions.conditions import expiry_as_read
from handlers.jobs.transitions.enqueue import first_fence
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.job import Lane, Lease
from handlers.testing.world import memory_world

from .generate import RULES, Mutant, mutants
from .page import Verdict
from .reached import Reached, remember, remembered, states_of
from .run import BUDGET, asked, chosen, in_children, is_caught, main
from .swap import NotSwapped, swap_tree

MODULE = "transitions/conditions.py"


def failed_assertion() -> None:
    assert not MODULE


def failed_expectation() -> None:
    with pytest.raises(ValueError, match="never"):
        pass


def refused() -> NoReturn:
    raise Rejected("begin", {})


def refused_by_the_rules() -> None:
    set_slots(memory_world(), "t", Lane.SMALL, -1)


def crashed() -> None:
    expiry_as_read("no lease")  # type: ignore[arg-type]


def crashed_in_the_test() -> NoReturn:
    raise ValueError


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (failed_assertion, True),
        (failed_expectation, True),
        (refused, True),
        (refused_by_the_rules, True),
        (crashed, False),
        (crashed_in_the_test, False),
    ],
)
def test_a_crash_is_not_caught(act: object, *, expected: bool) -> None:
    with pytest.raises(BaseException) as raised:  # noqa: PT011  every kind is asked for
        act()  # type: ignore[operator]
    assert is_caught(raised.value) is expected


def dies() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def test_a_child_that_dies_is_told_and_is_no_result() -> None:
    answers = list(in_children([lambda: 7, dies, lambda: 8], alarm=60))
    assert answers == [7, f"exit code {-signal.SIGKILL}", 8]


def test_tests_that_caught_a_neighbour_come_first_then_the_module_s_then_the_quickest() -> None:
    mutant = mutants(MODULE)[0]
    call = (mutant.module, mutant.where)
    reached = Reached(
        calls={
            "a": {call},
            "b": {call},
            "x/test_conditions.py::c": {call},
            "d": set(),
            "e": {call},
        },
        seconds={"a": 1.0, "b": 0.5, "x/test_conditions.py::c": 1.5, "d": 0.1, "e": BUDGET},
    )
    assert chosen(reached, mutant) == ["x/test_conditions.py::c", "b", "a"]
    results = [(mutant, Verdict("caught", "a"))]
    assert chosen(reached, mutant, results) == ["a", "x/test_conditions.py::c", "b"]


def swapped() -> object:
    tree = ast.parse((RULES / MODULE).read_text(encoding="utf-8").replace("is None", "is not None"))
    swap_tree(MODULE, "expiry_as_read", tree)
    return expiry_as_read(Lease(fence=1, job_id="j", expires_at=5))


def not_swapped() -> object:
    with pytest.raises(NotSwapped):
        swap_tree(MODULE, "no_such_function", ast.parse(""))
    return "told"


def test_a_mutant_s_code_is_that_of_every_module_in_the_child_alone() -> None:
    before = expiry_as_read(Lease(fence=1, job_id="j", expires_at=5))
    assert list(in_children([swapped, not_swapped], alarm=60)) == [(), "told"]
    assert expiry_as_read(Lease(fence=1, job_id="j", expires_at=5)) == before != ()


def test_a_mutant_names_its_function() -> None:
    assert {m.where for m in mutants(MODULE)} == {"owns_lease", "job_as_read", "expiry_as_read"}
    assert isinstance(mutants(MODULE)[0], Mutant)
    assert first_fence.__code__.co_qualname == "first_fence"


def test_the_mutants_of_a_module_are_run_alone() -> None:
    every = [mutant for module in (MODULE, "words/states.py") for mutant in mutants(module)]
    assert asked([], every, []) == asked(["--changed"], every, []) == every
    assert asked([MODULE], every, []) == mutants(MODULE)
    with pytest.raises(SystemExit, match="no mutants in other"):
        asked(["other.py"], every, [])


def test_an_older_python_is_told_which_one_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.version_info", (3, 11, 7))
    assert main([]) == 1
    assert "needs Python 3.12 or newer" in capsys.readouterr().out


def test_what_a_test_calls_is_remembered_until_its_file_changes(tmp_path: Path) -> None:
    files = {name: tmp_path / f"{name}.py" for name in ("a", "b", "failed")}
    for file in files.values():
        file.write_text("before")
    reached = Reached(
        calls={test: {(MODULE, "owns_lease")} for test in files},
        seconds=dict.fromkeys(files, 0.5),
        failed=["failed"],
    )
    remember(tmp_path / "map", reached, states_of(files))
    files["b"].write_text("after")
    found = remembered(tmp_path / "map", states_of(files))
    assert found == Reached(calls={"a": {(MODULE, "owns_lease")}}, seconds={"a": 0.5})

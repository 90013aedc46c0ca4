"""The page of the mutants is read as it was written, and is not older than the code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from . import page
from .generate import modules, mutants, mutants_of
from .page import COMMAND, Row, Verdict, complaints, place_of, row_of, rows_of_page, write_page

if TYPE_CHECKING:
    from .generate import Mutant

SOURCE: Final = "def f(a, b):\n    return a | b and a < 3"
CAUGHT: Final = Verdict("caught", "words/test_job.py::test[a|b]")
SURVIVED: Final = Verdict("survived", "3 tests")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """The mutants of a small module, and no page yet."""
    for name in ("PAGE", "REASONS", "TESTS"):
        monkeypatch.setattr(page, name, tmp_path / name)
    test = tmp_path / "TESTS" / "words" / "test_job.py"
    test.parent.mkdir(parents=True)
    test.write_text("def test() -> None: ...")
    return mutants_of("words/job.py", SOURCE)


def excuse(mutant: Mutant) -> None:
    module, where, what = place_of(mutant)
    lines = (f"module='{module}'", f"where='{where}'", f"what='{what}'", "reason='Harmless.'")
    page.REASONS.write_text("[[survivor]]\n" + "\n".join(lines))


def results(made: list[Mutant], first: Verdict = CAUGHT) -> list[Row]:
    return [row_of(m, first if m is made[0] else CAUGHT) for m in made]


def test_the_page_lists_the_mutants_of_the_code_as_it_is() -> None:
    every = [mutant for module in modules() for mutant in mutants(module)]
    missing = complaints(every, rows_of_page())
    assert not missing, "\n".join([f"docs/mutants.md is out of date; run {COMMAND}", *missing])


def test_a_page_is_read_as_it_was_written(made: list[Mutant]) -> None:
    written = write_page(made, results(made, SURVIVED))
    assert written[0].text == "`f`: `a | b and a < 3` without `a | b`"
    assert rows_of_page() == written


def test_a_later_result_replaces_an_earlier_one(made: list[Mutant]) -> None:
    write_page(made, results(made, SURVIVED))
    write_page(made, [*rows_of_page(), row_of(made[0], CAUGHT)])
    assert [row.word for row in rows_of_page()] == ["caught"] * 3
    assert complaints(made, rows_of_page()) == []


def test_a_new_condition_and_one_that_is_gone_are_told(made: list[Mutant]) -> None:
    write_page(made[:-1], results(made))
    [told] = complaints(made, rows_of_page())
    assert told == "not on the page: words/job.py: f: `a < 3` as `a <= 3`"
    write_page(made, results(made))
    [told] = complaints(made[:-1], rows_of_page())
    assert told == "no longer in the code: words/job.py: f: `a < 3` as `a <= 3`"


def test_a_survivor_needs_a_reason(made: list[Mutant]) -> None:
    write_page(made, results(made, SURVIVED))
    [told] = complaints(made, rows_of_page())
    assert told.startswith("neither noticed nor excused: words/job.py: f: ")
    excuse(made[0])
    assert complaints(made, rows_of_page()) == [
        "the page is not as its results and the reasons make it"
    ]
    write_page(made, rows_of_page())
    assert complaints(made, rows_of_page()) == []
    assert "| Harmless. |" in page.PAGE.read_text()


def test_a_mutant_that_was_not_run_has_no_excuse(made: list[Mutant]) -> None:
    excuse(made[0])
    write_page(made, results(made)[1:])
    [told] = complaints(made, rows_of_page())
    assert told.endswith(": not run: ")


def test_a_reason_for_what_is_caught_is_told(made: list[Mutant]) -> None:
    excuse(made[0])
    write_page(made, results(made))
    [told] = complaints(made, rows_of_page())
    assert told.startswith("a reason for what is noticed or gone: ")


def test_what_has_changed_is_run_again(made: list[Mutant]) -> None:
    changed = mutants_of("words/job.py", SOURCE.replace("def f(a, b)", "def f(a, b, c)"))
    assert page.to_be_run(made, []) == made
    assert page.to_be_run(made, results(made)) == []
    assert page.to_be_run(changed, results(made)) == changed
    assert complaints(changed, write_page(changed, results(made))) == []
    assert page.to_be_run(made, results(made, SURVIVED)) == made[:1]
    excuse(made[0])
    assert page.to_be_run(made, results(made, SURVIVED)) == []


def test_a_crash_is_noticed_and_told_apart(made: list[Mutant]) -> None:
    crashed = Verdict("crashed", "TypeError in tests/unit/jobs/words/test_job.py::test")
    rows = write_page(made, results(made, crashed))
    assert complaints(made, rows_of_page()) == []
    assert page.to_be_run(made, rows) == []
    assert page.score(rows).startswith(
        "Tests notice 3 of 3 mutants (100.0 %): 2 are caught, 1 crashed"
    )


def test_what_a_test_that_is_gone_caught_is_run_again(made: list[Mutant]) -> None:
    for gone in ("words/test_job.py::test_gone", "words/test_gone.py::test"):
        assert page.to_be_run(made, results(made, Verdict("caught", gone))) == made[:1]

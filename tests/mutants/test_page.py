"""The page of the mutants is read as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import generate, page
from .generate import mutants_of
from .page import Result, Row, Verdict


def test_a_page_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "mutants.md")
    source = "def f(a, b):\n    return a | b and a < 3"
    made = mutants_of("words/job.py", source)
    results = [Result(m, Verdict("caught", "test_x.py::test[a|b]")) for m in made]
    results[0] = Result(made[0], Verdict("survived", "3 tests"))
    [left] = page.write_page(results, seconds=7)
    assert "`f`: `a | b and a < 3` without `a | b`" in left
    rows = page.rows_of_page()
    assert [row.key for row in rows] == [m.key for m in made]
    assert rows[0] == Row(
        made[0].key, "words/job.py", f"`f`: {made[0].what}", "survived", "3 tests"
    )
    assert generate.source_hash("words/job.py") in page.PAGE.read_text(encoding="utf-8")
    page.write_page(results[:1], rows, seconds=7)
    assert {row.key for row in page.rows_of_page()} == {m.key for m in made}

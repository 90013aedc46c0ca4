"""What a name or id must be."""

from __future__ import annotations

import pytest

from handlers.jobs.words.text_rules import text_problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "empty"),
        ("\x00", "control"),
        ("a\tb", "control"),
        ("a\x9fb", "control"),
        ("\ud800", "surrogate"),
        ("x" * 11, "at most 10"),
        ("é" * 6, "is 12 bytes"),
        ("😀" * 3, "is 12 bytes"),
    ],
)
def test_bad_text(text: str, problem: str) -> None:
    assert problem in (text_problem(text, 10) or "")


@pytest.mark.parametrize("text", ["x" * 10, "é" * 5, " ", "\u202e", "\u2028", "\ue000", "😀"])
def test_good_text(text: str) -> None:
    assert text_problem(text, 10) is None

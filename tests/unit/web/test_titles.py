"""What is committed and served reads the same, whatever the interpreter calls a status."""

from __future__ import annotations

import ast
import json
from http import HTTPStatus
from pathlib import Path
from typing import Final

import pytest

from handlers.web.openapi_build import text
from handlers.web.openapi_document import packaged
from handlers.web.problems import Problem
from handlers.web.titles import TITLES

ROOT: Final = Path(__file__).parents[3]
ANSWERING: Final = ("handlers/web", "infra")


def named(source: str) -> set[HTTPStatus]:
    """The statuses that a module names."""
    return {
        HTTPStatus[node.attr]
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "HTTPStatus"
    }


def test_every_status_that_an_answer_can_have_has_a_title_and_no_other() -> None:
    modules = [path for folder in ANSWERING for path in (ROOT / folder).rglob("*.py")]
    found = [named(path.read_text(encoding="utf-8")) for path in modules if path.stem != "titles"]
    assert set().union(*found) == set(TITLES)


def test_the_interpreters_words_are_neither_committed_nor_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for status in TITLES:
        monkeypatch.setattr(status, "phrase", "as this version has it")
    assert text() == packaged()
    for status, title in TITLES.items():
        body = Problem(status, "code", "detail").response("r").body
        assert body is not None
        assert json.loads(body)["title"] == title

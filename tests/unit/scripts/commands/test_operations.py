"""``fairlane operations``: what an author sees before any job runs."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.errors import CommandError
from handlers.jobs.selection.request import BadRequest, accept
from handlers.operations.registry import all_operations
from scripts.commands import operation_tables
from scripts.commands.operations import app
from tests.support.own import forget

OWN: Final = str(Path(__file__).parents[3] / "support" / "own_operations")


@pytest.fixture(autouse=True)
def only_for_this_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from forget(monkeypatch, "own_operations")


def run(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(app, list(words), catch_exceptions=True)
    if isinstance(done.exception, CommandError):
        assert status == 1
        return f"error: {done.exception}"
    assert done.exit_code == status, done.output
    return done.output


def test_the_list_has_fairlanes_operations_and_those_of_a_folder() -> None:
    assert "raise_price" not in run("list")
    listed = run("list", "--operations", OWN)
    assert "raise_price" in listed
    assert "set_fields" in listed


@pytest.mark.parametrize("words", [("list", "--operations", OWN), ("check", OWN)])
def test_a_person_sees_no_markup_of_docstrings(words: tuple[str, ...]) -> None:
    shown = run(*words)
    assert '`{"percent": 2.5}`' in shown
    assert "``" not in shown


def test_the_list_as_json_has_the_parameters() -> None:
    [found] = [
        each
        for each in json.loads(run("list", "--operations", OWN, "--json"))["operations"]
        if each["name"] == "raise_price"
    ]
    assert "percent" in found["parameters"]["properties"]


def test_a_folder_is_checked(tmp_path: Path) -> None:
    assert run("check", OWN).startswith("raise_price: Raise the price by some percent")
    assert run("check", str(tmp_path / "no"), status=1).endswith("there is no such folder")


def test_records_are_tried_before_any_job(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"price": 10}\n\n{"price": 0.1}\n')
    words = ("try", "raise_price", "--operations", OWN, "--param", "percent=2.5")
    shown = run(*words, "--records", str(file), "--record", '{"price": 100}', "--json")
    after = [each["after"] for each in json.loads(shown, parse_float=str)["records"]]
    assert after == [{"price": "10.25"}, {"price": "0.1"}, {"price": "102.5"}]


def test_a_record_that_fails_is_the_exit_status() -> None:
    words = ("try", "raise_price", "--operations", OWN, "--param", "percent=2.5")
    shown = run(*words, "--record", '{"name": "x"}', status=1)
    assert "fail the price is not a number" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nothing_such", "--record", "{}"), "there is no operation 'nothing_such'; there are "),
        (("reindex", "--record", "{"), "--record: not JSON"),
        (("reindex", "--record", "[1]"), "--record: not a JSON object"),
        (
            ("reindex", "--record", "{}", "--param", "x=1"),
            "the parameters are refused: x is not known here",
        ),
        (("reindex", "--records", "no.jsonl"), "no.jsonl cannot be read"),
    ],
)
def test_what_cannot_be_tried_says_why(words: tuple[str, ...], said: str) -> None:
    assert said in run("try", *words, status=1)


def test_all_that_is_wrong_with_parameters_is_told_in_the_words_of_the_api() -> None:
    body = {"operation": "adjust_number", "subject": "s", "ids": ["1"], "params": {"hi": 1}}
    with pytest.raises(BadRequest) as refused:
        accept(body, all_operations(), max_ids=1)
    by_api = {f"{each.field} {each.detail}" for each in refused.value.errors}
    said = run("try", "adjust_number", "--record", "{}", "--param", "hi=1", status=1)
    wrong = said.removeprefix("error: the parameters are refused: ").split("; ")
    assert {f"params.{each}" for each in wrong} == by_api
    assert {"field is missing", "hi is not known here"} <= set(wrong)


def test_parameters_that_contradict_each_other_are_told_in_the_words_of_their_check() -> None:
    words = ("try", "adjust_number", "--record", "{}", "--param", 'field="a"')
    said = run(*words, status=1)
    assert said.startswith("error: the parameters are refused: ")
    assert "Value error" not in said
    assert "  " not in said


@pytest.mark.parametrize(
    "words", [("reindex",), ("reindex", "--record", "{}", "--param", "x"), ("reindex", "--param")]
)
def test_a_command_that_is_used_wrongly_has_status_2(words: tuple[str, ...]) -> None:
    run("try", *words, status=2)


TABLED = '''"""Made for a test."""

from fairlane.operations import Change, Fields, Outcome, Parameters, Table, operation


class Rated(Parameters):
    rates: Table


@operation("rated", Rated, writes=lambda _: frozenset({"rate"}))
def rated(record: Fields, parameters: Rated) -> Outcome:
    """Name the rate of the currency."""
    return Change({"rate": parameters.rates[str(record["currency"])]["rate"]})
'''


@pytest.fixture
def rated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, ...]]:
    """``try`` of an operation with a lookup table, and two files in the working folder."""
    (tmp_path / "tabled").mkdir()
    (tmp_path / "tabled" / "rated.py").write_text(TABLED, encoding="utf-8")
    (tmp_path / "rates.csv").write_text("currency,rate\nEUR,1.10\n", encoding="utf-8")
    lines = b'{"currency": "EUR", "rate": 1.10}\n'
    (tmp_path / "rates.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "bad.csv").write_text("currency\nEUR\nEUR\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield ("try", "rated", "--operations", "tabled", "--record", '{"currency": "EUR"}', "--json")
    for name in [name for name in sys.modules if name.partition(".")[0] == "tabled"]:
        del sys.modules[name]


def test_an_operation_is_tried_with_a_table_from_a_file(
    rated: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ("--key", "rates=currency")
    assert '"rate":"1.10"' in run(*rated, "--table", "rates=rates.csv", *key)
    again = rated[:2] + rated[4:]  # the folder is known by now
    assert '"rate":1.1}' in run(*again, "--table", "rates=rates.jsonl.gz", *key)
    assert "line 3" in run(*again, "--table", "rates=bad.csv", *key, status=1)
    with monkeypatch.context() as small:
        small.setattr(operation_tables, "MOST", 30)  # the file has 23 bytes
        assert "as JSON" in run(*again, "--table", "rates=rates.csv", *key, status=1)
    shutil.copy("rates.csv", "OTHER.CSV")
    assert '"rate":"1.10"' in run(*again, "--table", "rates=OTHER.CSV", *key)
    # The others are those of `fairlane jobs submit`, in its words.
    for wrong in ("rates=none.csv", "rates=rates.txt", "rates"):
        run(*again, "--table", wrong, *key, status=2)
    run(*again, "--table", "rates=rates.csv", *key, "--param", "rates=1", status=2)

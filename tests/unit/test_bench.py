"""A bench that fails leaves the others their results; the exit status says whether all held."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner, Result

from scripts.bench.framework import Bench, Measured
from scripts.cli import app
from scripts.commands import bench
from scripts.local.errors import LocalError
from scripts.local.steps import Steps


def good(_: Steps) -> Measured:
    return Measured(ratio=0.9, at_least=0.8, figures={"records/s": 1234.5})


def slow(_: Steps) -> Measured:
    return Measured(ratio=0.7, at_least=0.8)


def dead(_: Steps) -> Measured:
    raise LocalError("the stack cannot be read [here]")


def broken(_: Steps) -> Measured:
    raise KeyError("a bug")


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: str, **runs: object) -> Result:
    benches = [Bench(name, f"shows {name}", run) for name, run in runs.items()]  # type: ignore[arg-type]  # see above
    monkeypatch.setattr(bench, "BENCHES", benches)
    return CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "160"})


def test_the_others_have_their_results_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = invoke(monkeypatch, dead=dead, broken=broken, good=good)
    assert seen.exit_code == 1
    for part in ("the stack cannot be read [here]", "KeyError: 'a bug'", "1,234.5 records/s"):
        assert part in seen.stdout
    # And each was shown as soon as it was known.
    assert "dead: failed: the stack cannot be read [here]" in seen.stderr
    assert "good: 0.90 ok" in seen.stderr


def test_so_it_is_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = invoke(monkeypatch, "--json", dead=dead, good=good)
    assert seen.exit_code == 1
    found = json.loads(seen.stdout)
    assert found["ok"] is False
    assert found["benches"]["dead"] == {"ok": False, "error": "the stack cannot be read [here]"}
    assert (found["benches"]["good"]["ratio"], found["benches"]["good"]["ok"]) == (0.9, True)
    assert seen.stderr == ""


@pytest.mark.parametrize(("run", "status"), [(good, 0), (slow, 1)])
def test_the_exit_status_says_whether_every_bound_was_kept(
    monkeypatch: pytest.MonkeyPatch, run: object, status: int
) -> None:
    assert invoke(monkeypatch, one=run).exit_code == status


def test_one_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = invoke(monkeypatch, "other", good=good)
    assert isinstance(seen.exception, LocalError)
    assert "no bench 'other'; there are: good" in str(seen.exception)

"""A bench that fails leaves the others their results; the exit status says whether all held."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from fairlane_client.commands.app import app
from scripts.bench.figures import Figure, Limit, in_turns
from scripts.bench.framework import Bench, Measured
from scripts.bench.place import Place
from scripts.commands import bench
from scripts.commands.comparing import TROUBLE
from scripts.local.errors import LocalError

Run = Callable[[Place], Measured]


LIMIT = Limit(at_least=0.8)


def measuring(ratio: float, **held: Any) -> Run:
    """A bench with one figure; with a bound, unless it is held against something else."""
    figure = Figure.of("ours ÷ theirs", [ratio], **held or {"bound": LIMIT})
    return lambda _: Measured(figures=(figure,), facts={"records/s": 1234.5})


def dead(_: Place) -> Measured:
    raise LocalError("the stack cannot be read [here]")


def broken(_: Place) -> Measured:
    raise KeyError("a bug")


GOOD = measuring(0.9)


def invoke(monkeypatch: pytest.MonkeyPatch, *arguments: str, **runs: Run) -> Result:
    benches = [Bench(name, f"shows {name}", run) for name, run in runs.items()]
    monkeypatch.setattr(bench, "BENCHES", benches)
    return CliRunner().invoke(app, ["bench", *arguments], env={"COLUMNS": "160"})


# --- the command ------------------------------------------------------------------------------


def test_the_others_have_their_results_when_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = invoke(monkeypatch, dead=dead, broken=broken, good=GOOD)
    assert seen.exit_code == 1
    for part in ("the stack cannot be read [here]", "KeyError: 'a bug'", "1,234.5 records/s"):
        assert part in seen.stdout
    # And each was shown as soon as it was known.
    assert "dead: failed: the stack cannot be read [here]" in seen.stderr
    assert "good: ours ÷ theirs: 0.90 ok" in seen.stderr


def test_so_it_is_in_json_and_in_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "new" / "bench.json"
    seen = invoke(monkeypatch, "--json", "--to", str(file), dead=dead, good=GOOD)
    assert seen.exit_code == 1
    assert seen.stderr == ""
    found = json.loads(seen.stdout)
    assert found == json.loads(file.read_text())
    assert found["ok"] is False
    assert found["benches"]["dead"]["error"] == "the stack cannot be read [here]"
    [figure] = found["benches"]["good"]["figures"]
    assert (figure["ratio"], figure["kept"], figure["aim_kept"]) == (0.9, True, None)


def test_the_file_has_what_is_known_when_a_later_bench_is_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def killed(_: Place) -> Measured:
        raise KeyboardInterrupt

    file = tmp_path / "bench.json"
    invoke(monkeypatch, "--to", str(file), good=GOOD, killed=killed)
    assert json.loads(file.read_text())["benches"].keys() == {"good"}


def test_a_file_that_cannot_be_written_is_named_by_its_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen = invoke(monkeypatch, "--to", str(tmp_path), good=GOOD)
    assert seen.exit_code == TROUBLE
    assert f"--to {tmp_path}" in seen.stderr
    assert "good: " not in seen.stderr  # nothing was measured for it


def test_so_is_one_that_can_no_longer_be_written_when_there_are_results(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "bench.json"

    def in_the_way(place: Place) -> Measured:
        file.mkdir()
        return GOOD(place)

    seen = invoke(monkeypatch, "--to", str(file), good=in_the_way)
    assert isinstance(seen.exception, LocalError)
    assert f"--to {file}" in str(seen.exception)


def test_one_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = invoke(monkeypatch, "other", good=GOOD)
    assert isinstance(seen.exception, LocalError)
    assert "no bench 'other'; there are: good" in str(seen.exception)


# --- what is held against what ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "status", "short_status"),
    [
        ({"bound": LIMIT}, 1, 0),
        ({"bound": LIMIT, "counted": True}, 1, 1),
        ({"aim": LIMIT}, 0, 0),
        ({"aim": LIMIT, "bound": Limit(at_least=0.5)}, 0, 0),
        ({"bound": None}, 0, 0),
    ],
)
def test_only_bounds_have_a_say_in_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, held: dict[str, Any], status: int, short_status: int
) -> None:
    """Of a short run only those of counts: a few rounds of what is timed say nothing."""
    assert invoke(monkeypatch, one=measuring(0.7, **held)).exit_code == status
    assert invoke(monkeypatch, "--short", one=measuring(0.7, **held)).exit_code == short_status
    assert invoke(monkeypatch, one=measuring(0.9, **held)).exit_code == 0


def test_an_aim_is_shown_as_kept_or_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "aim missed" in invoke(monkeypatch, one=measuring(0.7, aim=LIMIT)).stdout
    assert "aim kept" in invoke(monkeypatch, one=measuring(0.9, aim=LIMIT)).stdout


def test_a_figure_is_the_median_of_the_pairs_and_their_middle_half() -> None:
    """Not the ratio of the medians: a machine that is slow for one pair is slow for both sides."""
    figure = Figure.of("f", [1.0, 20.0, 3.0, 4.0, 5.0], [1.0, 10.0, 3.0, 2.0, 1.0])
    assert (figure.ratio, figure.low, figure.high, figure.pairs) == (2.0, 1.0, 2.0, 5)
    one = Figure.of("f", [3.0], [2.0])
    assert (one.ratio, one.low, one.high) == (1.5, 1.5, 1.5)


def test_both_sides_are_run_in_turns() -> None:
    order: list[str] = []

    def noted(name: str) -> Callable[[], float]:
        def run() -> float:
            order.append(name)
            return float(len(order))

        return run

    ones, others = in_turns(noted("a"), noted("b"), 3)
    assert "".join(order) == "abbaab"
    assert (ones, others) == ([1, 4, 5], [2, 3, 6])

"""A scenario fails when anything differs, in its control too; the command says so and exits 1."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.jobs.words.states import State
from scripts.commands import verify
from scripts.load.drive import Duplicate
from scripts.local.steps import Steps
from scripts.verify.framework import (
    Bench,
    Expectation,
    Information,
    Part,
    Scenario,
    Seen,
    perform,
)
from scripts.verify.lane_isolation import ONE_QUEUE, TWO_LANES, refused, slo_ms
from scripts.verify.registry import SCENARIOS


def good(_: Bench) -> Iterator[Expectation]:
    yield Expectation.equal("a thing", expected=1, saw=1)


def bad(_: Bench) -> Iterator[Expectation]:
    yield Expectation.equal("a thing", expected=1, saw=2)
    yield Expectation.equal("another", expected=1, saw=1)


def broken(_: Bench) -> Iterator[Expectation]:
    yield Expectation.equal("a thing", expected=1, saw=1)
    raise RuntimeError("it broke")


def silent(_: Bench) -> Iterator[Expectation]:
    yield from ()


DIFFERENT = [(bad, good), (good, bad), (broken, good), (good, broken), (silent, good)]


@pytest.mark.parametrize(("run", "control"), DIFFERENT)
def test_a_difference_in_either_part_fails(run: Part, control: Part) -> None:
    assert not perform(Scenario("s", "", run, control), Bench(Steps(quiet=True))).ok


def test_an_error_is_a_difference_and_what_was_seen_before_it_stays() -> None:
    report = perform(Scenario("s", "", broken, good), Bench(Steps(quiet=True)))
    first, last = report.parts[0].expectations
    assert first.ok
    assert (last.saw, last.ok) == ("RuntimeError: it broke", False)
    assert report.parts[1].ok  # the control ran all the same


def told(_: Bench) -> Iterator[Seen]:
    yield Expectation.equal("a thing", expected=1, saw=1)
    yield Information(what="a time", beside="SLO 1 ms: missed on this machine", saw="2 ms")


def only_told(_: Bench) -> Iterator[Seen]:
    yield Information(what="a time", beside="", saw="2 ms")


def test_what_is_only_told_decides_nothing() -> None:
    report = perform(Scenario("s", "", told, good), Bench(Steps(quiet=True)))
    assert report.ok
    [each] = report.parts[0].information
    assert each.saw == "2 ms"
    assert not perform(Scenario("s", "", only_told, good), Bench(Steps(quiet=True))).ok


def test_what_is_only_told_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [Scenario("one", "", told, good)]
    code, out, _ = invoke(monkeypatch, scenarios, "one", "--json")
    assert code == 0
    [each] = json.loads(out)["scenarios"][0]["parts"][0]["information"]
    assert each["beside"] == "SLO 1 ms: missed on this machine"
    assert "2 ms" in invoke(monkeypatch, scenarios, "one")[1]


def invoke(
    monkeypatch: pytest.MonkeyPatch, scenarios: list[Scenario], *arguments: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(verify, "SCENARIOS", scenarios)
    result = CliRunner().invoke(app, ["verify", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize(("run", "control"), [(good, good), *DIFFERENT])
def test_the_exit_status_says_whether_all_was_as_expected(
    monkeypatch: pytest.MonkeyPatch, run: Part, control: Part
) -> None:
    as_expected = (run, control) == (good, good)
    scenarios = [Scenario("one", "", good, good), Scenario("two", "", run, control)]
    code, out, _ = invoke(monkeypatch, scenarios, "--all", "--json")
    printed = json.loads(out)
    assert code == (0 if as_expected else 1)
    assert printed["ok"] is as_expected
    assert [each["scenario"] for each in printed["scenarios"]] == ["one", "two"]


def test_one_scenario_is_run_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    scenarios = [Scenario("one", "", good, good), Scenario("two", "", bad, good)]
    code, out, _ = invoke(monkeypatch, scenarios, "one")
    assert code == 0
    assert "Everything is as expected" in out
    code, out, _ = invoke(monkeypatch, scenarios, "two")
    assert code == 1
    assert "✗" in out


def test_a_difference_is_said_as_soon_as_its_scenario_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenarios = [Scenario("one", "", good, bad), Scenario("two", "", good, good)]
    said = invoke(monkeypatch, scenarios, "--all")[2]
    first, after = said.split("one: NOT as expected")
    assert "✗" not in first
    assert after.index("✗ control: a thing: 2 — expected 1") < after.index("two: ")


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("one", "--all")])
def test_an_unclear_wish_lists_what_there_is(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    code, _, err = invoke(monkeypatch, [Scenario("one", "", good, good)], *arguments)
    assert code == 2
    assert "one" in err


def test_scenarios_are_found_by_their_names() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(set(names)) == len(names)
    assert "lane-isolation" in names


# --- lane-isolation ---------------------------------------------------------------------------


def test_both_parts_of_lane_isolation_promise_the_same() -> None:
    assert slo_ms(TWO_LANES) == slo_ms(ONE_QUEUE) == 1000


REFUSED = Duplicate(
    holder="j1",
    holder_state=State.QUEUED,
    status=409,
    code="subject_busy",
    named="j1",
    seconds=0.1,
    new_jobs=0,
    small_messages=0,
    dispatches=0,
)


def _with(**changes: object) -> Duplicate:
    return Duplicate(**{**REFUSED.__dict__, **changes})


def test_a_duplicate_refused_with_its_holder_is_as_expected() -> None:
    assert all(each.ok for each in refused(REFUSED))


@pytest.mark.parametrize(
    "duplicate",
    [
        _with(status=202),
        _with(code="in_progress"),
        _with(named="j2"),
        _with(named=None),
        _with(holder_state=State.SUCCEEDED),
        _with(new_jobs=1),
        _with(small_messages=1),
        _with(dispatches=1),
    ],
)
def test_a_duplicate_that_is_not_refused_as_it_should_differs(duplicate: Duplicate) -> None:
    assert sum(not each.ok for each in refused(duplicate)) == 1

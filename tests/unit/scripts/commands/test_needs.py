"""A command that needs a checkout says so before it starts anything, also where the extra
``fairlane[local]`` has all that it imports at first."""

from __future__ import annotations

import sys

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from fairlane_client.commands.errors import CommandError
from scripts.commands.comparing import TROUBLE
from scripts.load import own
from scripts.verify import waf
from scripts.verify.framework import Report


@pytest.mark.parametrize("words", [["demo"], ["verify", "--all"], ["verify", "lane-isolation"]])
def test_data_that_only_a_checkout_has_is_missed_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    def up(*_: object, **__: object) -> None:
        raise AssertionError("a stack was started in vain")

    monkeypatch.setattr(own, "up", up)
    monkeypatch.setitem(sys.modules, "airportsdata", None)
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, CommandError), done.output
    assert done.exception.status == TROUBLE
    assert str(done.exception) == (
        f"`fairlane {words[0]}` needs a checkout of Fairlane and its development tools: "
        "`make setup` there (airportsdata is not installed)"
    )


def test_a_deployed_stack_is_verified_without_a_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airportsdata", None)
    monkeypatch.setattr(waf, "report", lambda *_: Report(scenario="waf", shows="", parts=()))
    asked = ["verify", "waf", "--url", "https://127.0.0.1:9", "--token", "t"]
    assert CliRunner().invoke(app, asked).exit_code == 0

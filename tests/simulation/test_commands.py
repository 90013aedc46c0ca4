"""``fairlane simulate`` and ``fairlane soak``, as docs/simulation.md shows them."""

from __future__ import annotations

import shlex

from typer.testing import CliRunner

from fairlane_client.commands.app import app
from tests.support.shown import RECIPES

FEW = "3"


def said(command: str) -> str:
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_seed_is_replayed_step_by_step() -> None:
    command, _ = RECIPES["simulate"]
    assert len(said(command).splitlines()) > 100


def test_seeds_that_no_test_has_tried_are_simulated() -> None:
    """Fewer than the page's."""
    command, _ = RECIPES["soak"]
    assert "seeds" in said(command.replace("20000", FEW))

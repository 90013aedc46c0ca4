"""Without a terminal a step is one line when it ends, so that long work is seen to go on."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from scripts.local.steps import Steps


def steps(*, terminal: bool = False, quiet: bool = False) -> tuple[Steps, io.StringIO]:
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=80)
    return Steps(quiet=quiet, console=console), out


def test_each_step_is_a_line_as_soon_as_it_has_ended() -> None:
    made, out = steps()
    with made:
        with made.step("Deploying it"):
            assert out.getvalue() == ""
        assert out.getvalue().startswith("✓ Deploying it: ")
        with made.step("Submitting bulk jobs", 1234) as advance:
            advance(1)
        first, second = out.getvalue().splitlines()
    assert first.endswith(" s")
    assert second.startswith("✓ Submitting bulk jobs (1,234): ")


def test_a_step_that_fails_is_marked() -> None:
    made, out = steps()
    with pytest.raises(RuntimeError), made, made.step("Deploying it"):
        raise RuntimeError
    assert out.getvalue().startswith("✗ Deploying it: ")


def test_a_terminal_has_bars_and_no_such_lines() -> None:
    made, out = steps(terminal=True)
    with made, made.step("Deploying it"):
        pass
    assert "Deploying it: " not in out.getvalue()
    assert "Deploying it" in out.getvalue()


def test_quiet_says_nothing() -> None:
    made, out = steps(quiet=True)
    with made, made.step("Deploying it"):
        made.say("a text")
    assert out.getvalue() == ""

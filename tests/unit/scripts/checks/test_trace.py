"""How many files a reader opens to follow one job. See ``make trace``."""

from __future__ import annotations

import pytest

from scripts.checks.trace import Trace, life_of_a_job, main

MOST = {"create": (8, 14), "finish": (7, 14)}
"""Files, and switches between them."""


@pytest.mark.parametrize("step", MOST)
def test_a_reader_of_one_step_opens_few_files(step: str) -> None:
    trace = life_of_a_job()[step]
    files, switches = MOST[step]
    assert len(trace.files) <= files, trace.files
    assert trace.switches <= switches, trace.path


def test_every_step_goes_through_the_files_of_its_name() -> None:
    life = life_of_a_job()
    assert "transitions.enqueue.create_job" in life["create"].calls
    assert "transitions.attempt.begin_attempt" in life["begin"].calls
    assert "transitions.chunk_commit.commit_chunk" in life["work"].calls
    assert "transitions.finish.finish_job" in life["finish"].calls


def test_files_and_switches_are_counted() -> None:
    trace = Trace(["a.one.f", "a.one.g", "a.two.h", "a.one.f"])
    assert trace.files == ["a.one", "a.two"]
    assert trace.switches == 2


def test_the_command_shows_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    shown = capsys.readouterr().out
    for name, trace in life_of_a_job().items():
        assert f"{name}: {len(trace.files)} files, {trace.switches} switches" in shown

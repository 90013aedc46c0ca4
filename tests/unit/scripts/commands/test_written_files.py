"""A file that cannot be written is refused before the work whose result it gets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest
import typer
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from fairlane_client.commands.errors import CommandError
from fairlane_client.commands.files import check_target
from scripts.commands import bench, dashboard

COMMANDS: Final = {"--preview": ("dashboard",), "--to": ("bench",)}


@pytest.fixture(autouse=True)
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("work has begun")

    monkeypatch.setattr(bench, "perform", work)
    monkeypatch.setattr(dashboard, "deployment", work)


def refused(option: str, path: Path) -> str:
    done = CliRunner().invoke(app, [*COMMANDS[option], option, str(path)], env={"COLUMNS": "1000"})
    if isinstance(done.exception, CommandError):
        return str(done.exception)
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    return done.stderr


def test_a_picture_in_no_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "nosuchdir" / "b.png"
    said = refused("--preview", file)
    assert f"--preview {file}: there is no folder {file.parent}" in said
    assert not file.parent.exists()


def test_a_picture_has_one_format(tmp_path: Path) -> None:
    file = tmp_path / "b.xyz"
    assert f"--preview {file}: the picture is a .png file" in refused("--preview", file)


def test_results_are_not_written_over_a_folder(tmp_path: Path) -> None:
    assert f"--to {tmp_path} is not a file" in refused("--to", tmp_path)


def test_results_in_a_folder_that_cannot_be_made_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    file = tmp_path / "file" / "b.json"
    said = refused("--to", file)
    assert said.startswith(f"--to {file}: ")
    assert str(tmp_path / "file") in said


def test_a_file_without_the_permission_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[Path] = []

    def denied(path: Path, _: int) -> bool:
        asked.append(path)
        return False

    monkeypatch.setattr(os, "access", denied)
    (tmp_path / "there").touch()
    for name in ("there", "new"):
        with pytest.raises(typer.BadParameter, match="cannot be written"):
            check_target("--to", tmp_path / name)
    assert asked == [tmp_path / "there", tmp_path]

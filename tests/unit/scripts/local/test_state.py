"""A stack's folder is removed, whatever writes into it meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from scripts.local import state
from scripts.local.state import StackFolder, State


def test_what_is_written_while_the_folder_is_removed_goes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = StackFolder("mine", tmp_path)
    folder.write(State())
    remove, late = shutil.rmtree, ["b", "a"]

    def removed(path: Path, *, ignore_errors: bool) -> None:
        remove(path, ignore_errors=ignore_errors)
        if late:
            path.mkdir()
            (path / late.pop()).touch()

    monkeypatch.setattr(shutil, "rmtree", removed)
    monkeypatch.setattr(state, "CLEAR_PAUSE_S", 0)
    folder.clear()
    assert late == []
    assert not folder.path.exists()

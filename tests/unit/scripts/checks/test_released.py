"""The last release is the one that the change log names, and a checkout without history says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.checks.released import source
from scripts.checks.released.source import ROOT, VERSION, NoHistory, unpack


def test_it_is_the_newest_release_of_the_change_log() -> None:
    [newest, *_] = re.findall(
        r"^## (\d+\.\d+\.\d+) ", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert newest == VERSION


def test_a_checkout_without_its_commit_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(source, "COMMIT", "0" * 40)
    with pytest.raises(NoHistory, match="fetch the whole history"):
        unpack(tmp_path)
    assert not list(tmp_path.iterdir())

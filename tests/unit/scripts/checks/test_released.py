"""The last release is the one that the change log names, and a checkout without history says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from scripts.checks.released import source
from scripts.checks.released.source import (
    ROOT,
    VERSION,
    WORKER,
    NoHistory,
    keep,
    unpack,
    unpack_worker,
)


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


def test_a_workers_code_of_it_is_kept(tmp_path: Path) -> None:
    unpack_worker(tmp_path)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted(WORKER)
    assert (tmp_path / "handlers" / "bulk_worker.py").is_file()


def test_without_its_commit_what_is_kept_stays(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"as it was")
    monkeypatch.setattr(source, "COMMIT", "0" * 40)
    monkeypatch.setattr(source, "ARCHIVE", kept)
    with pytest.raises(NoHistory):
        keep()
    assert kept.read_bytes() == b"as it was"

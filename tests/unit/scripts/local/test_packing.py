"""A function's code is uploaded with its bytecode, which the function's processes then use."""

from __future__ import annotations

import io
import zipfile
from importlib import import_module, util
from pathlib import Path

import pytest

from scripts.local.packing import packed

SOURCE = "def answer():\n    return 1 / 0\n"


@pytest.fixture
def asset(tmp_path: Path) -> Path:
    folder = tmp_path / "asset"
    (folder / "packed_code" / "inner").mkdir(parents=True)
    (folder / "packed_code" / "inner" / "one.py").write_text(SOURCE)
    (folder / "packed_code" / "broken.py").write_text("def (")
    (folder / "packed_code" / "data.json").write_text("{}")
    return folder


@pytest.fixture
def unpacked(asset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    to = tmp_path / "unpacked"
    zipfile.ZipFile(io.BytesIO(packed(asset, "zip"))).extractall(to)
    monkeypatch.syspath_prepend(to)
    return to


def test_the_bytecode_is_what_is_imported(unpacked: Path) -> None:
    """Of another source than the one that lies there, and with the place where it lies."""
    source = unpacked / "packed_code" / "inner" / "one.py"
    source.write_text("raise AssertionError('compiled again')")
    module = import_module("packed_code.inner.one")
    with pytest.raises(ZeroDivisionError) as caught:
        module.answer()
    assert caught.traceback[-1].path == source


def test_what_does_not_compile_says_so_when_it_is_imported(unpacked: Path) -> None:
    with pytest.raises(SyntaxError, match=r"broken\.py"):
        import_module("packed_code.broken")


def test_nothing_else_is_added_and_the_same_code_is_the_same_archive(asset: Path) -> None:
    content = packed(asset, "zip")
    assert zipfile.ZipFile(io.BytesIO(content)).namelist() == [
        "packed_code/broken.py",
        "packed_code/data.json",
        "packed_code/inner/one.py",
        util.cache_from_source("packed_code/inner/one.py"),
    ]
    assert packed(asset, "zip") == content


def test_a_file_is_uploaded_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "template.json").write_text("{}")
    assert packed(tmp_path / "template.json", "file") == b"{}"

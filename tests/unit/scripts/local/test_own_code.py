"""What a local stack's workers start with when a team has operations of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

from scripts.local.assemblies import content_of
from scripts.local.own_code import keep_own_code


def assembly_of(tmp_path: Path, *packages: str) -> Path:
    assembly = tmp_path / "cdk.out"
    (assembly / "asset.wheels" / "python").mkdir(parents=True)
    for package in packages:
        folder = assembly / "asset.code" / package
        folder.mkdir(parents=True)
        (folder / "one.py").write_text(package)
    return assembly


def test_workers_keep_their_copy_whatever_is_synthesised_next(tmp_path: Path) -> None:
    assembly = assembly_of(tmp_path, "handlers", "fairlane", "ours")
    kept = keep_own_code(assembly, tmp_path / "stack")
    assert kept is not None
    shutil.rmtree(assembly)
    assert [each.name for each in kept.iterdir()] == ["ours"]
    assert (kept / "ours" / "one.py").read_text() == "ours"


def test_without_own_operations_there_is_nothing_to_keep(tmp_path: Path) -> None:
    assert keep_own_code(assembly_of(tmp_path, "handlers", "fairlane"), tmp_path / "stack") is None


def test_another_text_of_an_operation_is_another_synthesis(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    folder.mkdir()
    (folder / "one.py").write_text("x = 1")
    context = {"fairlane": {"operations": "./ours"}}
    before = content_of(context, tmp_path).key
    assert content_of(context, tmp_path).key == before
    (folder / "one.py").write_text("x = 2")
    assert content_of(context, tmp_path).key != before

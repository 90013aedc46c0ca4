"""Cloud assemblies that were synthesised before, by what they depend on.

Nothing is ever looked up by name or time: an assembly is found by a digest of everything that
could change it, and is used only when each of its files is still what was written.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

PROJECT: Final = Path(__file__).resolve().parents[2]
ROOT: Final = PROJECT / ".fairlane" / "synthesis"
SOURCES: Final = ("app.py", "cdk.json", "infra", "handlers", "requirements/lambda.txt")
"""What ``app.py`` reads or packs, from the project's folder."""
KEPT: Final = 8
"""Assemblies; the one that was not used for longest goes first."""
ASSEMBLY: Final = "assembly"
DIGESTS: Final = "digests.json"


def key_of(context: Mapping[str, Any], project: Path = PROJECT) -> str:
    """A digest of all that an assembly depends on: the context, the sources, the interpreter and
    the version of every installed package."""
    depends_on = {
        "context": context,
        "sources": {
            str(file.relative_to(project)): _digest(file)
            for source in SOURCES
            for file in _files(project / source)
        },
        "python": [sys.version, sys.platform, os.uname().machine],
        "packages": installed(),
        "project": str(project),
    }
    return hashlib.sha256(json.dumps(depends_on, sort_keys=True).encode()).hexdigest()


def installed() -> list[str]:
    """Name and version of each package of this environment."""
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return sorted(info.name for folder in folders for info in Path(folder).glob("*.dist-info"))


class Assemblies:
    """Those that are kept, in one folder. Several commands may use it at a time."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def take(self, key: str, out: Path) -> bool:
        """Copy the assembly to ``out``, in place of what is there. False when there is none; one
        that is damaged is removed."""
        entry = self._root / key
        shutil.rmtree(out, ignore_errors=True)
        try:
            shutil.copytree(entry / ASSEMBLY, out)
            expected = json.loads((entry / DIGESTS).read_text())
            os.utime(entry)
        except (OSError, ValueError):
            expected = None
        if expected is not None and _digests(out) == expected:
            return True
        for damaged in (entry, out):
            shutil.rmtree(damaged, ignore_errors=True)
        return False

    def keep(self, key: str, assembly: Path) -> None:
        """Keep a copy, whole or not at all."""
        self._root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._root, prefix="new-") as folder:
            fresh = Path(folder) / key
            shutil.copytree(assembly, fresh / ASSEMBLY)
            (fresh / DIGESTS).write_text(json.dumps(_digests(fresh / ASSEMBLY)))
            # Where another command has just kept the same one, that one stays.
            with contextlib.suppress(OSError):
                fresh.rename(self._root / key)
        self._forget()

    def _forget(self) -> None:
        def used(entry: Path) -> float:
            try:
                return entry.stat().st_mtime
            except FileNotFoundError:
                return 0.0

        entries = sorted(self._root.glob("[0-9a-f]*"), key=used, reverse=True)
        for entry in entries[KEPT:]:
            shutil.rmtree(entry, ignore_errors=True)


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    for file in sorted(path.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            yield file


def _digests(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): _digest(file) for file in _files(folder)}


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()

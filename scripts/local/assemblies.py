"""Cloud assemblies that were synthesised before, by what they depend on.

Nothing is ever looked up by name or time: an assembly is found by digests of everything that could
change it, and is used only when each of its files is still what was written.

Code that is packed, and that the app does not read while it synthesises, changes the package and
nothing else: then an earlier assembly gets the new package.
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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from .project import PROJECT, STATE

ROOT: Final = STATE / "synthesis"
SOURCES: Final = ("app.py", "cdk.json", "fairlane", "infra")
"""What ``app.py`` reads, from the project's folder."""
CODE: Final = "handlers"
"""What it packs, and reads some of."""
SETTINGS: Final = "fairlane"
"""The context key of the deployment's settings."""
KEPT: Final = 8
"""Assemblies; the one that was not used for longest goes first."""
ASSEMBLY: Final = "assembly"
ENTRY: Final = "entry.json"
PACKAGE: Final = "asset."
"""A package is a folder of the assembly: this and its digest, by which the templates name it."""
BY_CONTENT: Final = "AWS::Lambda::Version"
"""A resource whose name depends on a package."""


@dataclass(frozen=True)
class Content:
    """All that an assembly depends on, as digests."""

    base: str
    """Of the context, the sources, the interpreter and the version of every installed package."""
    code: Mapping[str, str]
    """Of each file that may be packed, by its path in the project."""

    @property
    def key(self) -> str:
        return _digest_of([self.base, self.code])


class Entry(BaseModel):
    """What is known of an assembly that is kept."""

    model_config = ConfigDict(frozen=True)

    base: str
    code: Mapping[str, str]
    read: frozenset[str]
    """Files of the project that the app read."""
    files: Mapping[str, str]
    """The assembly's own files, with their digests."""


def content_of(context: Mapping[str, Any], project: Path = PROJECT) -> Content:
    base = {
        "context": context,
        "sources": {
            str(file.relative_to(project)): _digest(file)
            for source in SOURCES
            for file in _files(project / source)
        },
        "python": [sys.version, sys.platform, os.uname().machine],
        "packages": installed(),
        "project": str(project),
        "operations": _operations(context.get(SETTINGS, {}).get("operations"), project),
    }
    code = {str(file.relative_to(project)): _digest(file) for file in _files(project / CODE)}
    return Content(_digest_of(base), code)


def _operations(chosen: object, project: Path) -> object:
    """A team's own operations, of which the app reads every file."""
    folder = project / str(chosen)
    if chosen is None or not folder.is_dir():
        return chosen
    return {str(file.relative_to(folder)): _digest(file) for file in _files(folder)}


def installed() -> list[str]:
    """Name and version of each package of this environment."""
    folders = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    return sorted(info.name for folder in folders for info in Path(folder).glob("*.dist-info"))


class Assemblies:
    """Those that are kept, in one folder. Several commands may use it at a time."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root = root

    def take(self, content: Content, out: Path, project: Path = PROJECT) -> bool:
        """Copy the assembly to ``out``, in place of what is there. False when there is none; one
        that is damaged is removed."""
        if self._copied(self._root / content.key, out):
            return True
        for folder in sorted(self._root.glob("[0-9a-f]*")):
            entry = _entry(folder)
            if entry is None or (changed := _only_packed(entry, content)) is None:
                continue
            fresh = {file: content.code[file] for file in changed}
            if self._copied(folder, out) and _packed_again(out, fresh, project):
                self.keep(content, out, entry.read)
                return True
        shutil.rmtree(out, ignore_errors=True)
        return False

    def keep(self, content: Content, assembly: Path, read: Iterable[str]) -> None:
        """Keep a copy, whole or not at all. read: files of the project that the app read."""
        self._root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self._root, prefix="new-") as folder:
            fresh = Path(folder) / content.key
            shutil.copytree(assembly, fresh / ASSEMBLY)
            entry = Entry(
                base=content.base,
                code=content.code,
                read=frozenset(read),
                files=_digests(fresh / ASSEMBLY),
            )
            (fresh / ENTRY).write_text(entry.model_dump_json())
            # Where another command has just kept the same one, that one stays.
            with contextlib.suppress(OSError):
                fresh.rename(self._root / content.key)
        self._forget()

    def _copied(self, folder: Path, out: Path) -> bool:
        shutil.rmtree(out, ignore_errors=True)
        entry = _entry(folder)
        try:
            shutil.copytree(folder / ASSEMBLY, out)
            os.utime(folder)
        except OSError:
            entry = None
        if entry is not None and _digests(out) == entry.files:
            return True
        shutil.rmtree(folder, ignore_errors=True)
        return False

    def _forget(self) -> None:
        def used(entry: Path) -> float:
            try:
                return entry.stat().st_mtime
            except FileNotFoundError:
                return 0.0

        entries = sorted(self._root.glob("[0-9a-f]*"), key=used, reverse=True)
        for entry in entries[KEPT:]:
            shutil.rmtree(entry, ignore_errors=True)


def _entry(folder: Path) -> Entry | None:
    """None when there is none that can be read."""
    try:
        return Entry.model_validate_json((folder / ENTRY).read_text())
    except (OSError, ValueError):
        return None


def _only_packed(entry: Entry, content: Content) -> list[str] | None:
    """The files in which the two differ, when these are packed and nothing else. A file that is
    new, or gone, may be one that the app does not pack: None then too."""
    if entry.base != content.base or entry.code.keys() != content.code.keys():
        return None
    changed = [file for file, digest in content.code.items() if entry.code[file] != digest]
    return None if entry.read & set(changed) else changed


def _packed_again(assembly: Path, changed: Mapping[str, str], project: Path) -> bool:
    """Put the files, which have these digests, into the packages that hold them. False when one
    has changed again, or a template depends on a package in another way than by its name."""
    texts = list(assembly.glob("*.json"))
    if any(BY_CONTENT in text.read_text() for text in texts):
        return False
    for package in list(assembly.glob(f"{PACKAGE}*/")):
        held = [file for file in changed if (package / file).is_file()]
        if not held:
            continue
        for file in held:
            shutil.copyfile(project / file, package / file)
            if _digest(package / file) != changed[file]:
                return False
        before = package.name.removeprefix(PACKAGE)
        after = _digest_of(_digests(package))
        package.rename(package.with_name(PACKAGE + after))
        for text in texts:
            text.write_text(text.read_text().replace(before, after))
    return True


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


def _digest_of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

"""A team's own operations: where they are, that they are operations, and how they are packed."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ENTRY_POINTS: Final = "fairlane.operations"
"""The group in which an installed distribution names its package of operations."""
REQUIREMENTS: Final = "requirements.txt"
"""Beside the operations: what their modules import, in pip's notation."""
NOT_SHIPPED: Final = shutil.ignore_patterns("__pycache__", "test_*", "tests", "conftest.py")


class OperationsError(ValueError):
    """Operations that cannot be deployed; the text names the file and line where there is one."""


@dataclass(frozen=True)
class OwnOperations:
    """A package of operations that has been checked."""

    folder: Path
    names: tuple[str, ...]
    """Of the operations, as clients send them."""
    requirements: str
    """In pip's notation; empty when there are none."""

    @property
    def package(self) -> str:
        """What the functions and workers import it as."""
        return self.folder.name


def own_operations(chosen: str) -> OwnOperations:
    """The operations in a folder, or those of an installed distribution's entry point of the group
    ``fairlane.operations``.

    chosen: a path, absolute or from the CDK app's working directory, which has a slash or is a
    folder; else the entry point's name. Raises OperationsError.
    """
    path = Path(chosen)
    if "/" in chosen or path.is_dir():
        folder = path.resolve()
        file = folder / REQUIREMENTS
        requirements = file.read_text(encoding="utf-8") if file.is_file() else ""
    else:
        folder, requirements = _installed(chosen)
    return OwnOperations(folder, checked(folder), requirements)


def checked(folder: Path) -> tuple[str, ...]:
    """The names of the operations that the package in this folder declares. Raises
    OperationsError."""
    run = subprocess.run(  # noqa: S603  our own module, and a path as its argument
        # -P: not from the working directory, where a team's folders may be called like ours.
        [sys.executable, "-P", "-m", "fairlane.checking", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(run.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = (run.stderr or run.stdout).strip()
        raise OperationsError(
            f"operations = {folder}: importing it ended the process: {said}"
        ) from None
    if problem := answer.get("problem"):
        raise OperationsError(f"operations: {problem}")
    return tuple(each["name"] for each in answer["operations"])


def _installed(name: str) -> tuple[Path, str]:
    """The folder of an entry point's package, and what its distribution requires."""
    points = metadata.entry_points(group=ENTRY_POINTS)
    found = {point.name: point for point in points}.get(name)
    if found is None:
        known = ", ".join(sorted({point.name for point in points})) or "none"
        raise OperationsError(
            f"operations = {name}: there is no such folder (a path has a slash: ./{name}), and no "
            f"entry point of that name in the group {ENTRY_POINTS}: {known}"
        )
    spec = None if "." in found.value else find_spec(found.value)
    places = list((spec and spec.submodule_search_locations) or ())
    if not places:
        raise OperationsError(
            f"operations = {name}: its entry point is {found.value}, which is no package at the "
            "top of a distribution"
        )
    needs = (found.dist.requires if found.dist else None) or []
    return Path(places[0]).resolve(), "\n".join(
        each for each in needs if "extra ==" not in each and not each.startswith("fairlane")
    )


def staged(root: Path, kept: Sequence[str], own: OwnOperations | None) -> Path:
    """A new folder that holds these of the root's files and folders, and the own package. It goes
    when the process ends."""
    stage = Path(tempfile.mkdtemp(prefix="fairlane-"))
    atexit.register(shutil.rmtree, stage, ignore_errors=True)
    for name in kept:
        (stage / name).parent.mkdir(parents=True, exist_ok=True)
        if (root / name).is_dir():
            skipped = shutil.ignore_patterns("__pycache__", "testing")
            shutil.copytree(root / name, stage / name, ignore=skipped)
        else:
            shutil.copyfile(root / name, stage / name)
    if own is not None:
        shutil.copytree(own.folder, stage / own.package, ignore=NOT_SHIPPED)
    return stage

"""Files that a user names for a command to read or to write."""

from __future__ import annotations

import os
from pathlib import Path

import typer


def check_target(option: str, path: Path) -> None:
    """Before the work whose result this file gets. Raises BadParameter, which names the option."""
    if path.exists() and not path.is_file():
        raise typer.BadParameter(f"{option} {path} is not a file")
    if not path.parent.is_dir():
        raise typer.BadParameter(f"{option} {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise typer.BadParameter(f"{option} {path} cannot be written: permission denied")


def check_source(option: str, path: Path) -> None:
    """Raises BadParameter, which names the option, for what nothing can be read from."""
    if not path.exists():
        raise typer.BadParameter(f"{option} {path}: no such file")
    if path.is_dir():
        raise typer.BadParameter(f"{option} {path} is a folder")

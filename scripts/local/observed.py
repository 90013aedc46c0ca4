"""Runs ``app.py`` and notes which of the project's files it read: ``observed.py APP NOTE``.

It runs by its path, so nothing of the project has been imported before.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path


def main(app: Path, note: Path) -> None:
    """Write the paths as JSON, relative to the project, in any case."""
    read: set[str] = set()

    def heard(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str):
            read.add(arguments[0])

    sys.addaudithook(heard)
    sys.path[0] = str(app.parent)
    sys.argv = [str(app)]
    try:
        runpy.run_path(str(app), run_name="__main__")
    finally:
        # A module that was compiled before is not opened itself.
        modules = [getattr(module, "__file__", None) for module in tuple(sys.modules.values())]
        files = {Path(os.path.abspath(file)) for file in (*read, *filter(None, modules))}  # noqa: PTH100  links stay as they are
        inside = sorted(
            str(file.relative_to(app.parent)) for file in files if file.is_relative_to(app.parent)
        )
        note.write_text(json.dumps(inside))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

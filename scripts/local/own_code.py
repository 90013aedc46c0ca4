"""A team's own packages out of a synthesised app, for the workers, which run as processes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

OURS: Final = frozenset({"handlers", "fairlane"})


def keep_own_code(assembly: Path, folder: Path) -> Path | None:
    """A copy of the packages that the functions have beside Fairlane's; None when there are none.

    It has a folder of its own for each state of the code: a running worker imports from its copy
    to its end, whatever is deployed meanwhile.
    """
    for asset in sorted(assembly.glob("asset.*/")):
        if not (asset / "handlers").is_dir():
            continue
        own = [each for each in asset.iterdir() if each.is_dir() and each.name not in OURS]
        own = [each for each in own if each.name != "requirements"]
        if not own:
            continue
        kept = folder / "own" / asset.name
        for each in own:
            shutil.copytree(each, kept / each.name, dirs_exist_ok=True)
        return kept
    return None

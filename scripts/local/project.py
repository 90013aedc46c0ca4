"""Whose app a local stack deploys: that of the working folder, or this checkout's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PACKAGES: Final = Path(__file__).resolve().parents[2]
"""What Fairlane's packages lie in: a checkout, or an environment that has the wheel."""
CDK_JSON: Final = "cdk.json"
OWN: Final = ("app.py", CDK_JSON, "fairlane", "handlers", "infra")
"""What a checkout of Fairlane has, and no other app."""


def is_checkout(folder: Path) -> bool:
    return all((folder / name).exists() for name in OWN)


def project_of(folder: Path) -> Path:
    """The folder of the CDK app that commands in ``folder`` are about."""
    if (folder / CDK_JSON).is_file() or not is_checkout(PACKAGES):
        return folder
    return PACKAGES


PROJECT: Final = project_of(Path.cwd())
STATE: Final = PROJECT / ".fairlane"
"""Where the commands of one project keep what they know."""

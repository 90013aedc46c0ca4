"""Whose app a local stack deploys: that of the working folder, or this checkout's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from .errors import LocalError

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


def cdk_json_of(folder: Path) -> dict[str, Any]:
    """What ``cdk.json`` of this folder says. Raises LocalError."""
    file = folder / CDK_JSON
    if not file.is_file():
        raise LocalError(
            "a local stack deploys the CDK app of the working folder, and there is no "
            f"{CDK_JSON} in {folder}"
        )
    try:
        found: Any = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LocalError(f"{file} cannot be read: {error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("context", {}), dict):
        raise LocalError(f"{file} has to hold a JSON object, and its context another one")
    return found


PROJECT: Final = project_of(Path.cwd())
STATE: Final = PROJECT / ".fairlane"
"""Where the commands of one project keep what they know."""

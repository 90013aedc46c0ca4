"""What must hold for ``requirements/``: exact versions, a reason for each, hashes for all."""

from __future__ import annotations

import re
from typing import Final

_ASKED: Final = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[\w,-]+\])?==(?P<version>[^\s;#]+)\s+#\s*\S+"
)
_PIN: Final = re.compile(r"^(?P<name>[a-z0-9._-]+)(?:\[[\w,-]+\])?==(?P<version>[^\s;\\]+)")


def asked(text: str) -> dict[str, str]:
    """Name -> version of what an ``.in`` file asks for. Raises ValueError for a line without an
    exact version or without the reason why the dependency is there."""
    found = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith(("#", "-r ")):
            continue
        match = _ASKED.match(line)
        if match is None:
            raise ValueError(f"{line!r} is not name==version  # why")
        found[re.sub(r"[-_.]+", "-", match["name"]).lower()] = match["version"]
    return found


def locked(text: str) -> dict[str, str]:
    """Name -> version of a compiled file. Raises ValueError for one without a hash."""
    found = {}
    for block in re.split(r"\n(?=[A-Za-z])", text):
        match = _PIN.match(block)
        if match is None:
            raise ValueError(f"{block.splitlines()[0]!r} is not pinned")
        if "--hash=sha256:" not in block:
            raise ValueError(f"{match['name']} has no hash")
        found[match["name"]] = match["version"]
    return found

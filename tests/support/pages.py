"""The fenced blocks of a page, also those inside lists."""

from __future__ import annotations

import re
import textwrap
from typing import Final

FENCED: Final = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    """Their contents. language: as it stands behind the fence; "" for plain ones."""
    # All of them are read, or the end of one would be the beginning of another.
    found = FENCED.findall(text)
    return [textwrap.dedent(content) for _, named, content in found if named == language]

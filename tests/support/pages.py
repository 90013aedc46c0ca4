"""The fenced blocks of a page, also those inside lists."""

from __future__ import annotations

import re
import textwrap


def blocks(text: str, language: str) -> list[str]:
    """Their contents. language: as it stands behind the fence; "" for plain ones."""
    found = re.findall(
        rf"^( *)```{re.escape(language)}\n(.*?)^\1```$", text, flags=re.MULTILINE | re.DOTALL
    )
    return [textwrap.dedent(content) for _, content in found]

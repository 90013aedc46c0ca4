"""The fenced blocks of the pages, also those inside lists, and the commands in them."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = {
    path.relative_to(ROOT).as_posix(): path
    for path in sorted(
        {
            *ROOT.glob("*.md"),
            *(ROOT / "docs").rglob("*.md"),
            *(ROOT / "examples").rglob("*.md"),
        }
    )
}
"""By their place in the repository."""
FENCED: Final = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SHELL: Final = ("", "sh")
BIN: Final = ".venv/bin/"
PROGRAMS: Final = frozenset(
    {
        *("aws", "curl", "export", "fairlane", "kill", "make", "mkdir", "node", "pip", "printf"),
        *("python", "python3", ".venv/cdk/node_modules/.bin/cdk"),
        *(BIN + name for name in ("fairlane", "node", "python")),
    }
)
"""What a line of a block begins with when it is a command."""
ASSIGNED: Final = re.compile(r"[A-Z_]+=")


def fenced(text: str) -> list[tuple[str, str]]:
    """Language, as it stands behind the fence ("" for none), and content of each block."""
    # All of them are read, or the end of one would be the beginning of another.
    return [(named, textwrap.dedent(content)) for _, named, content in FENCED.findall(text)]


def blocks(text: str, language: str) -> list[str]:
    """The contents of those of a language."""
    return [content for named, content in fenced(text) if named == language]


def scripts(text: str) -> list[str]:
    """The contents of the blocks that are for a shell."""
    return [content for named, content in fenced(text) if named in SHELL and is_script(content)]


def figures(text: str) -> list[str]:
    """The contents of the plain blocks that are not: diagrams, and what a command prints."""
    return [content for named, content in fenced(text) if named in SHELL and not is_script(content)]


def is_script(block: str) -> bool:
    first, *_ = block.split(maxsplit=1)
    return first in PROGRAMS or ASSIGNED.match(first) is not None


def commands(script: str) -> list[str]:
    """Each command in one line, without comments; a text in quotes may go over several lines."""
    found, held = [], ""
    for line in script.replace("\\\n", " ").splitlines():
        held = f"{held}\n{line}" if held else line
        try:
            words = shlex.split(held, comments=True)
        except ValueError:  # a quote that is still open
            continue
        if words:
            found.append(uncommented(held, len(words)))
        held = ""
    return found


def uncommented(line: str, words: int) -> str:
    """The line up to a comment behind its words, each space between two words once."""
    for mark in re.finditer(r"\s+#|\s*$", line):
        try:
            if len(shlex.split(line[: mark.start()])) == words:
                return re.sub(r"\s+", " ", line[: mark.start()].strip())
        except ValueError:  # that mark stands between quotes
            continue
    raise AssertionError(line)

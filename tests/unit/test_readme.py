"""The README's first screen, what it says of record stores, and that its translation keeps up."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from fairlane_client import __version__
from handlers.jobs.words import ports

ROOT: Final = Path(__file__).parents[2]
ENGLISH: Final = (ROOT / "README.md").read_text(encoding="utf-8")
JAPANESE: Final = (ROOT / "README.ja.md").read_text(encoding="utf-8")
FENCED: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SCREEN: Final = 45


def outline(text: str) -> list[tuple[str, list[str]]]:
    """For each section, the level of its heading and the blocks, addresses and code in it, which a
    translation has in common with its original; sorted, because a sentence may turn round."""
    found: list[tuple[str, list[str]]] = []
    blocks = FENCED.findall(text)
    for line in FENCED.sub("@block", text).splitlines():
        if line.startswith("#"):
            found.append((line.split()[0], []))
        elif line == "@block":
            found[-1][1].append(blocks.pop(0))
        else:
            found[-1][1].extend(re.findall(r"\]\([^)]+\)|`[^`]+`", line))
    return [(level, sorted(parts)) for level, parts in found]


def without_language(text: str) -> str:
    """Each names the other."""
    return text.replace("README.ja.md", "README").replace("README.md", "README")


def differences(one: str, other: str) -> list[str]:
    """The headings of the sections in which the other has more, less or something else."""
    here, there = outline(without_language(one)), outline(without_language(other))
    names = re.findall(r"^#+ .*$", FENCED.sub("", one), re.MULTILINE)
    if len(here) != len(there):
        return [f"{len(here)} and {len(there)} headings"]
    return [name for name, a, b in zip(names, here, there, strict=True) if a != b]


def test_the_translation_has_the_same_headings_commands_and_links() -> None:
    assert differences(ENGLISH, JAPANESE) == []


def test_a_translation_that_lags_is_found() -> None:
    assert differences(ENGLISH, JAPANESE.replace("make up  ", "make down")) == ["## Use it"]
    assert differences(ENGLISH, JAPANESE.replace("(docs/api.md)", "(docs/none.md)")) == [
        "## Use it"
    ]
    assert differences(ENGLISH, JAPANESE.replace("`handlers/jobs/`", "")) == ["## How it works"]
    assert differences(ENGLISH, JAPANESE + "\n## 追加\n") == ["8 and 9 headings"]


def test_the_translation_is_one() -> None:
    prose = FENCED.sub("", JAPANESE)
    kana = re.findall(r"[\u3041-\u30ff]", prose)
    assert len(kana) > len(prose) / 5


def test_the_first_screen_says_what_it_is_shows_it_and_says_what_it_is_not() -> None:
    screen = "\n".join(ENGLISH.splitlines()[:SCREEN])
    what, shown, is_not = (
        screen.index("never make"),
        screen.index("$ curl"),
        screen.index("is not:"),
    )
    assert what < shown < is_not
    assert "docs/tutorial.md" in screen


def test_the_newest_release_is_the_version_of_both_distributions() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", changes, re.MULTILINE)
    assert headings[0] == "Unreleased"
    released = [re.fullmatch(r"(\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)", each) for each in headings[1:]]
    versions = [each[1] for each in released if each is not None]
    assert len(versions) == len(headings) - 1
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert versions[0] == project["version"] == __version__


def test_another_record_store_is_as_many_methods_as_it_says() -> None:
    methods = [
        name for name, each in vars(ports.Store).items() if callable(each) and name[0] != "_"
    ]
    assert len(methods) == len(("get", "query", "count", "query_partition", "transact"))
    assert "the five methods of `Store`, and `RecordStore` and `RecordQuery`" in " ".join(
        ENGLISH.split()
    )
    for suite in (
        "test_store_writes",
        "test_store_conditions",
        "test_records",
        "test_record_query",
    ):
        assert (ROOT / "tests" / "contract" / f"{suite}.py").exists()

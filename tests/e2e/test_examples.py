"""The examples are complete: each runs from packages alone, away from the checkout."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Final

from scripts.checks import tree
from tests.support.installed import ROOT, Installed, wheel_of

EXAMPLES: Final = Path("examples")
SYNTHESIS: Final = """CDK_OUTDIR=cdk.out CDK_CONTEXT_JSON='{"aws:cdk:bundling-stacks": []}'"""
"""As the CDK's command does it, but without the wheels of the layer."""


def copied(name: str, place: Path) -> Path:
    """The files of an example that git has, in a new folder."""
    folder = place / name
    for file in tree.tracked(ROOT):
        if file.is_relative_to(EXAMPLES / name):
            there = folder / file.relative_to(EXAMPLES / name)
            there.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, there)
    return folder


def assert_it_holds(team: Installed, folder: Path) -> None:
    """All of its tests pass, also the one that deploys it to a local stack, and its app is
    synthesised as for AWS."""
    assert list(folder.glob("tests/test_*_local.py"))
    said = team.shell("python -m pytest -v -W error -p no:cacheprovider tests", cwd=folder)
    assert re.search(r"^tests/test_\w+_local\.py::\w+ PASSED", said, re.MULTILINE), said
    assert re.search(r"^=+ \d+ passed in [^,]*=+$", said, re.MULTILINE), said
    team.shell(f"{SYNTHESIS} python {folder.name}_app.py", cwd=folder)
    [template] = (folder / "cdk.out").glob("*.template.json")
    assert f"{folder.name}_operations" in template.read_text(encoding="utf-8")


def test_the_shop(team: Installed, tmp_path: Path) -> None:
    """Its operations are a folder."""
    folder = copied("shop", tmp_path)
    team.install("-r", str(folder / "requirements.txt"))
    assert_it_holds(team, folder)


def test_the_backfill(team: Installed, tmp_path: Path) -> None:
    """Its operations are in its own wheel."""
    folder = copied("backfill", tmp_path)
    (tmp_path / "wheel").mkdir()
    team.install(f"{wheel_of(tmp_path / 'wheel', EXAMPLES / 'backfill')}[dev]")
    shutil.rmtree(folder / "backfill_operations")
    assert_it_holds(team, folder)


def test_every_example_has_a_test_here() -> None:
    there = {path.name for path in (ROOT / EXAMPLES).iterdir() if (path / "cdk.json").is_file()}
    assert there == {"shop", "backfill"}

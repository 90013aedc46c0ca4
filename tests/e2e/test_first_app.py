"""A team that has no checkout: docs/first-app.md, from an empty folder to a job that is done."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.installed import ROOT, Installed

PAGE: Final = (ROOT / "docs" / "first-app.md").read_text(encoding="utf-8")
FILES: Final = dict(
    re.findall(r"^`([^`]+)`:\n\n```\w+\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)
)
BLOCKS: Final = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
INSTALL, SYNTHESISE, RUN = [text for language, text in BLOCKS if not language]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the page's files."""
    folder = tmp_path_factory.mktemp("shop")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_the_page_installs_what_the_tests_have(team: Installed) -> None:
    assert INSTALL.splitlines()[-1] == f"pip install '../fairlane{team.extra}'"
    assert len(FILES["app.py"].splitlines()) <= 10
    assert not team.has("tests")


def test_an_app_of_ones_own_is_synthesised(team: Installed, shop: Path) -> None:
    """With the wheels of the layer, whose list comes with the package."""
    assert "raise_price" in team.shell(SYNTHESISE, cwd=shop)
    out = shop / "cdk.out"
    template: dict[str, Any] = json.loads((out / "Shop.template.json").read_text())
    told = [
        resource["Properties"]["Environment"]["Variables"].get("FAIRLANE_OPERATIONS")
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function"
        and resource["Properties"]["Handler"].startswith("handlers.")
    ]
    assert told.count("our_operations") == 3
    files = {str(file.relative_to(out)).partition("/")[2] for file in out.glob("asset.*/**/*")}
    assert {
        *("handlers/api.py", "fairlane/operations.py", "our_operations/raise_price.py"),
        *("Dockerfile", "requirements/lambda.txt"),
        *("python/pydantic/__init__.py", "python/boto3/__init__.py"),
    } <= files
    assert not [file for file in files if file.startswith(("infra", "scripts", "handlers/testing"))]


def test_a_job_of_ones_own_is_done_on_a_local_stack(team: Installed, shop: Path) -> None:
    try:
        said = team.shell(RUN, cwd=shop)
    finally:
        team.run("fairlane", "local", "down", cwd=shop)
    assert "SUCCEEDED: 2 of 2 records changed" in said
    kept = (shop / ".fairlane" / "local" / "default.records.jsonl").read_text(encoding="utf-8")
    prices = {each["id"]: each.get("price") for each in map(json.loads, kept.splitlines())}
    assert prices == {"a-1": 10.25, "a-2": 7.69, "a-3": None}

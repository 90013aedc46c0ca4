"""What a team does that uses Fairlane and has no checkout: a CDK app of its own, from an empty
folder, with an operation of its own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.installed import ROOT, Installed

APP: Final = """
from fairlane.cdk import FairlaneJobs

import aws_cdk as cdk

app = cdk.App()
stack = cdk.Stack(app, "Shop")
FairlaneJobs(stack, "Jobs", operations="./our_operations", profile="dev")
app.synth()
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "app.py").write_text(APP, encoding="utf-8")
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    source = re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)[0]
    (folder / "our_operations").mkdir()
    (folder / "our_operations" / "raise_price.py").write_text(source, encoding="utf-8")
    return folder


def test_a_cdk_app_is_synthesised_without_a_checkout(team: Installed, shop: Path) -> None:
    """With the wheels of the layer, whose list comes with the package."""
    team.run("python", "app.py", cwd=shop, env={"CDK_OUTDIR": "cdk.out"})
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

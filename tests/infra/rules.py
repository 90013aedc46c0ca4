"""The cdk-nag rules over an app, and what they report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from infra.settings import DeploySettings

from .synthesis import app_and_stack

# isort: split
# infra comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks


def app_with_rules(settings: DeploySettings, out: Path) -> tuple[cdk.App, cdk.Stack]:
    app, stack = app_and_stack(settings, out)
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
    return app, stack


def report(out: Path, pack: str) -> dict[str, Any]:
    content = json.loads((out / "validation-report.json").read_text(encoding="utf-8"))
    (rules,) = [one for one in content["pluginReports"] if one["pluginName"] == pack]
    return dict(rules)

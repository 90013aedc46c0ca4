"""The CDK application. `python app.py` synthesises too, with the context of cdk.json."""

import json
from pathlib import Path

from fairlane.cdk import DeploySettings, FairlaneJobs

# isort: split
# fairlane comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

# The context of the command line, where there is one, wins over this.
cdk_json = json.loads(Path(__file__).with_name("cdk.json").read_text(encoding="utf-8"))
app = cdk.App(context=cdk_json["context"])
settings = DeploySettings.read(app.node.try_get_context("fairlane"))
stack = cdk.Stack(
    app,
    settings.stack_name,
    description="Fairlane: bulk jobs with lanes",
    termination_protection=settings.removal == "retain",
)
FairlaneJobs(stack, "Default", settings=settings)  # Default: the resources' names have no prefix
cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
app.synth()

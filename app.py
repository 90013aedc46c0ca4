"""The CDK application. `python app.py` synthesises too, with the context of cdk.json."""

import json
from pathlib import Path

from fairlane.cdk import DeploySettings, FairlaneJobs, FairlaneState

# isort: split
# fairlane comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks, ServerlessChecks

# The context of the command line, where there is one, wins over this.
cdk_json = json.loads(Path(__file__).with_name("cdk.json").read_text(encoding="utf-8"))
app = cdk.App(context=cdk_json["context"])
settings = DeploySettings.read(app.node.try_get_context("fairlane"))
about, kept = "Fairlane: bulk jobs with lanes", settings.removal == "retain"
stack = cdk.Stack(app, settings.stack_name, description=about, termination_protection=kept)
state = None
if settings.state_stack:
    below = cdk.Stack(app, f"{stack.stack_name}State", termination_protection=kept)
    state = FairlaneState(below, "Default", settings=settings)
FairlaneJobs(stack, "Default", settings=settings, state=state)  # Default: names have no prefix
cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app), ServerlessChecks(app))
app.synth()

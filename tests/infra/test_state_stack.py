"""Tables and bucket in a stack of their own: ``app.py`` with ``state_stack``, as the CDK's command
runs it, without the wheels of the layer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from fairlane.cdk import AuthSettings, FairlaneJobs, FairlaneState, settings_of
from scripts.local.settings import settings_anywhere
from tests.support.pages import PAGES, blocks

from .grants import ROLES, listed, statements
from .rules import report
from .synthesis import AUTH, CDK_JSON, JOINED, ROOT, TOPIC, Synthesised, context_of
from .synthesis import settings_of as chosen_settings

# isort: split
# fairlane comes first: it names the Node that runs the CDK's engine.
import aws_cdk as cdk

KEY: Final = JOINED["key_arn"]
STATEFUL: Final = frozenset(
    {
        *("DynamoDB::GlobalTable", "DynamoDB::Table", "S3::Bucket", "KMS::Key"),
        *("SecretsManager::Secret", "SSM::Parameter", "EFS::FileSystem", "ECR::Repository"),
        *("OpenSearchService::Domain", "RDS::DBInstance", "RDS::DBCluster", "Backup::BackupVault"),
    }
)
"""Types whose resources cannot be made again with what was in them."""
STAYS: Final = {"Logs::LogGroup"}
"""What ADR 18 leaves beside the programs although it is kept: who writes a log makes it."""


@dataclass(frozen=True)
class Split:
    state: Synthesised
    jobs: Synthesised
    out: Path

    @property
    def artifacts(self) -> dict[str, Any]:
        manifest = json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))
        return dict(manifest["artifacts"])


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    out = tmp_path_factory.mktemp("split")
    context = context_of(state_stack=True, key_arn=KEY)
    env = {**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": json.dumps(context)}
    subprocess.run([sys.executable, "app.py"], cwd=ROOT, env=env, check=True)
    state, jobs = (
        Synthesised(json.loads((out / f"{name}.template.json").read_text(encoding="utf-8")))
        for name in ("FairlaneState", "Fairlane")
    )
    return Split(state, jobs, out)


def kept(stack: Synthesised) -> set[str]:
    """The types of what holds data, or is kept when the stack goes."""
    return {
        resource["Type"].removeprefix("AWS::")
        for resource in stack.template["Resources"].values()
        if resource["Type"].removeprefix("AWS::") in STATEFUL
        or resource.get("DeletionPolicy", "Delete") != "Delete"
        or resource.get("UpdateReplacePolicy", "Delete") != "Delete"
    }


def test_what_is_lost_with_the_stack_of_the_jobs_can_be_made_again(split: Split) -> None:
    assert kept(split.jobs) == STAYS
    assert kept(split.state) == {"DynamoDB::GlobalTable", "S3::Bucket"}
    assert len(split.state.of("DynamoDB::GlobalTable")) == 3
    assert len(split.state.of("S3::Bucket")) == 1


def test_one_stack_has_it_all(stack: Synthesised) -> None:
    """The control: what the test above would see."""
    assert kept(stack) == {*STAYS, "DynamoDB::GlobalTable", "S3::Bucket"}


def test_state_outlives_its_stack_and_needs_no_other(split: Split) -> None:
    for resource in split.state.template["Resources"].values():
        if resource["Type"] != "AWS::S3::BucketPolicy":
            assert resource["DeletionPolicy"] == "RetainExceptOnCreate", resource["Type"]
            assert resource["UpdateReplacePolicy"] == "Retain"
    assert "Fn::GetStackOutput" not in json.dumps(split.state.template)
    assert "Fn::ImportValue" not in json.dumps(split.state.template)
    for name in ("FairlaneState", "Fairlane"):
        assert split.artifacts[name]["properties"]["terminationProtection"] is True
    assert "FairlaneState" in split.artifacts["Fairlane"]["dependencies"]


def test_a_reference_to_the_state_does_not_hold_it_fast(split: Split) -> None:
    """An export could not change as long as it is imported."""
    assert "Fn::ImportValue" not in json.dumps(split.jobs.template)
    assert not any("Export" in each for each in split.state.template["Outputs"].values())


def test_the_programs_are_told_what_the_state_is(split: Split) -> None:
    functions = [
        each["Environment"]["Variables"]
        for each in split.jobs.of("Lambda::Function").values()
        if "FAIRLANE_CONTROL_TABLE" in each.get("Environment", {}).get("Variables", {})
    ]
    assert len(functions) == 3
    [task] = split.jobs.of("ECS::TaskDefinition").values()
    [container] = task["ContainerDefinitions"]
    functions.append({each["Name"]: each["Value"] for each in container["Environment"]})
    for variables in functions:
        names = {
            part: state_of(variables[f"FAIRLANE_{part}"])
            for part in ("CONTROL_TABLE", "RECORDS_TABLE", "IDEMPOTENCY_TABLE", "PAYLOAD_BUCKET")
        }
        assert all(part.split("_")[0].title() in name for part, name in names.items()), names
        assert len(set(names.values())) == 4


def state_of(value: Any) -> str:
    """The output of the state's stack that a value is."""
    reference = value["Fn::GetStackOutput"]
    assert reference["StackName"] == "FairlaneState"
    return str(reference["OutputName"])


@pytest.mark.parametrize("role", ROLES)
def test_roles_may_do_with_it_what_they_may_in_one_stack(
    split: Split, stack: Synthesised, role: str
) -> None:
    assert Counter(actions(split.jobs, role)) == Counter(actions(stack, role))
    for statement in statements(split.jobs, ROLES[role]):
        service = str(listed(statement["Action"])[0]).partition(":")[0]
        if service in {"dynamodb", "s3"}:
            for resource in listed(statement["Resource"]):
                assert "FairlaneState" in json.dumps(resource)


def actions(stack: Synthesised, role: str) -> Iterator[str]:
    """Each action as often as there is a resource for it; customer keys are another matter."""
    for statement in statements(stack, ROLES[role]):
        for action in listed(statement["Action"]):
            if not str(action).startswith("kms:"):
                yield from [str(action)] * len(listed(statement["Resource"]))


def test_the_customer_key_encrypts_both_sides(split: Split) -> None:
    for table in split.state.of("DynamoDB::GlobalTable").values():
        assert table["Replicas"][0]["SSESpecification"]["KMSMasterKeyId"] == KEY
    [bucket] = split.state.of("S3::Bucket").values()
    assert KEY in json.dumps(bucket["BucketEncryption"])
    assert all(KEY in json.dumps(each) for each in split.jobs.of("SQS::Queue").values())
    for role in ROLES.values():
        used = [each for each in statements(split.jobs, role) if each["Resource"] == KEY]
        assert len(used) == 1


def test_no_finding_is_open(split: Split) -> None:
    for pack in ("AwsSolutions", "Serverless"):
        assert report(split.out, pack)["violations"] == []


# --- in a team's own app ------------------------------------------------------------------------


def stacks(**context: object) -> tuple[cdk.Stack, cdk.Stack]:
    app = cdk.App(context={**CDK_JSON, "aws:cdk:bundling-stacks": [], "fairlane": context})
    return cdk.Stack(app, "ShopState"), cdk.Stack(app, "Shop")


def test_settings_are_those_of_the_state() -> None:
    below, above = stacks()
    settings = chosen_settings(state_stack=True, stack_name="Shop")
    state = FairlaneState(below, "State", settings=settings)
    auth = AuthSettings.model_validate(AUTH)
    for twice in ({"auth": auth}, {"due_shards": 8}, {"settings": chosen_settings()}):
        with pytest.raises(ValueError, match="has the settings of that state"):
            FairlaneJobs(above, "Jobs", state=state, **twice)
    jobs = FairlaneJobs(above, "Jobs", state=state)
    assert jobs.settings is settings
    assert jobs.control_table is state.control
    assert jobs.records_table is state.records


def test_a_stack_for_state_needs_a_state() -> None:
    _, above = stacks()
    with pytest.raises(ValueError, match="state_stack = true and FairlaneJobs has no state"):
        FairlaneJobs(above, "Jobs", settings=chosen_settings(state_stack=True))


SHOP: Final = {"state_stack": True, "auth": AUTH, "alarm_topic_arn": TOPIC}


def test_the_context_goes_over_the_settings_of_both() -> None:
    below, above = stacks(log_level="DEBUG")
    settings = settings_of(above, SHOP)
    state = FairlaneState(below, "State", settings=settings)
    jobs = FairlaneJobs(above, "Jobs", settings=settings, state=state)
    assert (jobs.settings.stack_name, jobs.settings.log_level) == ("Shop", "DEBUG")


def test_a_state_that_no_settings_ask_for_is_refused() -> None:
    """The jobs would make tables of their own, and work with those."""
    below, _ = stacks()
    with pytest.raises(ValueError, match="FairlaneState and state_stack = false"):
        FairlaneState(below, "State", settings=chosen_settings(stack_name="Shop"))


def test_a_state_has_one_deployment() -> None:
    below, above = stacks()
    state = FairlaneState(below, "State", settings=settings_of(above, SHOP))
    FairlaneJobs(above, "Jobs", state=state)
    another = cdk.Stack(cdk.App(), "Another", stack_name="Shop")
    with pytest.raises(ValueError, match="ShopState/State has the FairlaneJobs Shop/Jobs already"):
        FairlaneJobs(another, "Jobs", state=state)


def test_a_state_in_the_stack_of_its_jobs_is_refused() -> None:
    _, above = stacks()
    state = FairlaneState(above, "State", settings=settings_of(above, SHOP))
    with pytest.raises(ValueError, match="are both in the stack Shop"):
        FairlaneJobs(above, "Jobs", state=state)


@pytest.mark.parametrize(
    "other",
    [
        cdk.Environment(account="123456789012", region="eu-central-1"),
        cdk.Environment(account="210987654321", region="eu-west-1"),
        None,
    ],
    ids=["region", "account", "whichever"],
)
def test_a_state_somewhere_else_is_refused(other: cdk.Environment | None) -> None:
    context = {**CDK_JSON, "aws:cdk:bundling-stacks": []}
    app = cdk.App(context=context)
    here = cdk.Environment(account="123456789012", region="eu-west-1")
    below = cdk.Stack(app, "ShopState", env=other)
    above = cdk.Stack(app, "Shop", env=here)
    settings = chosen_settings(state_stack=True, stack_name="Shop")
    state = FairlaneState(below, "State", settings=settings)
    with pytest.raises(ValueError, match="give both stacks the same account and region") as refused:
        FairlaneJobs(above, "Jobs", state=state)
    assert f"the FairlaneState is for {below.environment} and" in str(refused.value)
    assert "the FairlaneJobs for aws://123456789012/eu-west-1:" in str(refused.value)


def test_the_stack_of_the_jobs_has_the_name_that_the_settings_say() -> None:
    below, above = stacks()
    state = FairlaneState(below, "State", settings=chosen_settings(state_stack=True))
    with pytest.raises(ValueError, match=r"stack_name = Fairlane and .* is in the stack Shop"):
        FairlaneJobs(above, "Jobs", state=state)


@pytest.mark.parametrize(
    ("context", "made"),
    [({}, {"Shop", "ShopState"}), ({"fairlane": json.dumps(settings_anywhere())}, {"Shop"})],
    ids=["deployed", "local"],
)
def test_the_divided_app_of_the_page_is_one_stack_on_a_local_aws(
    tmp_path: Path, context: dict[str, str], made: set[str]
) -> None:
    """docs/construct.md; the context is what ``fairlane local up`` gives an app of a team."""
    _, source = blocks(PAGES["docs/construct.md"].read_text(encoding="utf-8"), "python")
    (tmp_path / "app.py").write_text(source, encoding="utf-8")
    out = tmp_path / "cdk.out"
    chosen = json.dumps({**CDK_JSON, "aws:cdk:bundling-stacks": [], "fairlane": None, **context})
    path = os.pathsep.join([str(ROOT), str(ROOT / "client" / "src")])
    env = {**os.environ, "CDK_OUTDIR": str(out), "CDK_CONTEXT_JSON": chosen, "PYTHONPATH": path}
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, env=env, check=True)
    found = {each.name.partition(".")[0] for each in out.glob("*.template.json")}
    assert found == made

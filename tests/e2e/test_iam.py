"""IAM enforced: every program signs its calls as its own role, and the local AWS refuses what the
role's deployed policies do not allow.

One exercise has every program do its work. It passes as the stack is deployed, and the API and the
workers of both lanes fail when one of their grants is taken away. Recovery leaves something behind
whichever of its grants is taken away. That the others' grants are each needed by some call, and
none is too much, ``tests/infra/test_rights_used.py`` shows without a stack.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import pytest

from fairlane_client import Client, NewJob, NewUpload
from fairlane_client.downloads import fetch
from handlers.aws.runtime import SystemRuntime
from handlers.jobs.lifecycle import control
from handlers.jobs.lifecycle.dispatch import is_unsent
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage.control_table import job_key
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Job, Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Update
from scripts.local import airports
from scripts.local.stack import LocalStack
from scripts.local.warming import look_up
from scripts.verify.site import Site, stand_still

TENANT: Final = "guarded"
RECORDS: Final = 450
REFUSED: Final = "AccessDenied"
END: Final = 600
LONG: Final = 300
"""Ids of a job that keeps them in the bucket."""


@pytest.fixture(scope="module")
def enforced(stacks: Path) -> Iterator[LocalStack]:
    """A stack that enforces IAM, with records of one tenant."""
    with LocalStack("enforced", root=stacks, iam=True, records=False) as running:
        table = running.deployed.outputs["RecordsTable"]
        airports.load(running.clients.dynamodb, table, tenants={TENANT: records()})
        # The worker's first job, too: what a process asks only once is asked before anything is
        # taken away.
        with Client(running.api.url, running.issuer.token(TENANT)) as client:
            ids = list(records())[:300]
            client.wait(client.submit(change("before all", ids=ids)).id, timeout=END)
        assert REFUSED not in log(running)
        yield running


@pytest.fixture
def client(enforced: LocalStack) -> Iterator[Client]:
    with Client(enforced.api.url, enforced.issuer.token(TENANT)) as made:
        yield made


def records() -> dict[str, airports.Fields]:
    return dict(list(airports.airports_by_tenant()["europe"].items())[:RECORDS])


def change(subject: str, **which: Any) -> NewJob:
    params = {"fields": {"checked": subject}}
    return NewJob(operation="set_fields", subject=subject, params=params, **which)


def function(stack: LocalStack, part: str) -> str:
    """The name of the one function with this in its logical id."""
    [name] = [
        each.id
        for id_, each in stack.deployed.resources.items()
        if each.type == "AWS::Lambda::Function" and part in id_
    ]
    return name


def recovered(stack: LocalStack) -> dict[str, Any]:
    """What comes of one run of recovery."""
    name = function(stack, "RecoveryFunction")
    answer: Any = stack.clients.lambda_.invoke(FunctionName=name, Payload=b"{}")
    return dict(answer)


def log(stack: LocalStack) -> str:
    """What functions, workers and the local AWS said so far; the API's lines are not in there."""
    return "".join(file.read_text(errors="replace") for file in stack.folder.path.glob("*.log"))


def test_all_that_a_deployment_does_is_allowed(
    enforced: LocalStack, client: Client, tmp_path: Path
) -> None:
    ids = list(records())
    # Whatever was taken away from the worker before has come back to it.
    client.wait(client.submit(change("first", ids=ids[:300])).id, timeout=END)
    refused_before = log(enforced).count(REFUSED)
    file = tmp_path / "ids.jsonl"
    file.write_text("".join(f"{json.dumps(id_)}\n" for id_ in ids))
    upload = client.upload(file, NewUpload(format="jsonl"))
    everyone = {"all": [{"field": "country", "op": "exists", "value": True}]}
    long_ids = [f"{number:0250}" for number in range(LONG)]
    jobs = [
        client.submit(change("few", ids=ids[:10])),
        client.submit(change("many", ids=ids[:300])),
        client.submit(change("file", upload_id=upload)),
        client.submit(change("query", query=everyone)),
        client.submit(change("kept in the bucket", ids=long_ids)),
        client.submit(NewJob(operation="delete_records", subject="last", params={}, ids=ids[-3:])),
    ]
    assert client.preview(change("looked at", ids=ids[:10])).lane == "small"
    ended = {job.subject: client.wait(job.id, timeout=END) for job in jobs}
    assert {job.state for job in ended.values()} == {State.SUCCEEDED}, ended
    assert ended["many"].succeeded == 300
    assert ended["last"].succeeded == 3

    fails = NewJob(
        operation="adjust_number", subject="fails", params={"field": "name", "add": 1}, ids=ids[:3]
    )
    failed = client.wait(client.submit(fails).id, timeout=END)
    assert len(list(client.items(failed.id, "failed"))) == 3
    again = client.retry(failed.id, failed_only=True)
    assert client.wait(again.id, timeout=END).failed == 3

    report = client.report(ended["many"].id)
    fetch(report, tmp_path / "report.csv", got=lambda _: None)
    held = client.submit(change("stopped", ids=ids[:400]))
    client.cancel(held.id)
    assert client.wait(held.id, timeout=END).state in (State.CANCELLED, State.SUCCEEDED)
    assert client.page().jobs
    assert client.subject("few").subject == "few"
    assert client.lanes()
    assert "FunctionError" not in recovered(enforced)
    assert log(enforced).count(REFUSED) == refused_before


# --- and without a grant it is not ------------------------------------------------------------


@contextmanager
def without(stack: LocalStack, role: str, action: str, resource: str = "") -> Iterator[None]:
    """The role whose logical id begins so may not do this meanwhile. resource: the end of the ARN
    of which it may not; of none without it."""
    policies = policies_of(stack, role)
    for policy, document in policies.items():
        fewer = [
            {**document["Statement"][0], "Action": action_, "Resource": resource_}
            for action_, resource_ in given(document)
            if action_ != action or not resource_.endswith(resource)
        ]
        put_policy(stack, role, policy, {**document, "Statement": fewer})
        assert len(fewer) < len(given(document)), f"{role} has no {action} of {resource}"
    try:
        yield
    finally:
        for policy, document in policies.items():
            put_policy(stack, role, policy, document)


def policies_of(stack: LocalStack, role: str) -> dict[str, dict[str, Any]]:
    """The role's policy documents by name."""
    iam, name = stack.clients.iam, name_of(stack, role)
    return {
        policy: iam.get_role_policy(RoleName=name, PolicyName=policy)["PolicyDocument"]
        for policy in iam.list_role_policies(RoleName=name)["PolicyNames"]
    }


def put_policy(stack: LocalStack, role: str, policy: str, document: dict[str, Any]) -> None:
    stack.clients.iam.put_role_policy(
        RoleName=name_of(stack, role), PolicyName=policy, PolicyDocument=json.dumps(document)
    )


def name_of(stack: LocalStack, role: str) -> str:
    [name] = [
        each.id
        for id_, each in stack.deployed.resources.items()
        if each.type == "AWS::IAM::Role" and id_.startswith(role)
    ]
    return name


def given(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The actions that a policy allows, each with each resource. Its statements have nothing
    else."""
    statements = document["Statement"]
    assert all(set(each) <= {"Action", "Effect", "Resource"} for each in statements)
    return [
        (action, resource)
        for each in statements
        for action in listed(each["Action"])
        for resource in listed(each["Resource"])
    ]


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def the_api(stack: LocalStack) -> bool:
    body = change("refused", ids=["1"]).model_dump(exclude_none=True)
    return stack.api.call("POST", "/v1/jobs", tenant=TENANT, body=body).status >= 500


def the_small_lane(stack: LocalStack) -> bool:
    before = log(stack).count(REFUSED)
    failed = look_up(stack.clients, function(stack, "SmallLane"))["batchItemFailures"]
    return len(failed) == 1 and log(stack).count(REFUSED) > before


def a_worker(stack: LocalStack) -> bool:
    """Its slots long poll for a second, and then ask again."""
    before = log(stack).count(REFUSED)
    while log(stack).count(REFUSED) == before:
        assert stack.workers.running
        time.sleep(0.1)
    return True


@pytest.mark.parametrize(
    ("role", "action", "fails"),
    [
        ("ApiRole", "dynamodb:PutItem", the_api),
        ("SmallLaneRole", "dynamodb:GetItem", the_small_lane),
        ("BulkLaneTaskTaskRole", "sqs:ReceiveMessage", a_worker),
    ],
)
def test_without_a_grant_something_fails(
    enforced: LocalStack, role: str, action: str, fails: Callable[[LocalStack], bool]
) -> None:
    with without(enforced, role, action):
        assert fails(enforced)


# --- recovery -----------------------------------------------------------------------------------

CONTROL: Final = "ControlTable"
RECOVERY: Final = {
    ("dynamodb:GetItem", CONTROL): {"dead: taken", "odd: taken", "held: waits"},
    ("dynamodb:PutItem", CONTROL): {"held: waits"},
    ("dynamodb:UpdateItem", CONTROL): {
        *("unsent: not sent", "dead: taken", "odd: taken", "held: waits"),
    },
    ("dynamodb:DeleteItem", CONTROL): {"unsent: not sent", "held: not sent"},
    ("dynamodb:ConditionCheckItem", CONTROL): {"odd: taken"},
    ("dynamodb:Query", f"{CONTROL}/index/due"): {
        *("unsent: not sent", "dead: taken", "odd: taken", "held: waits"),
    },
    ("dynamodb:Query", f"{CONTROL}/index/held"): {"held: waits"},
    ("s3:DeleteObject", "PayloadBucket/*"): {"dead: its list"},
    ("sqs:SendMessage", "SmallQueueUrl"): {"unsent: not sent"},
    ("sqs:SendMessage", "BulkQueueUrl"): {"held: not sent"},
}
"""Its grants, resources by the stack's outputs, and what a run without one leaves of a wreck."""
LOGS: Final = {"logs:CreateLogStream", "logs:PutLogEvents"}
"""Lambda writes them, which the local one does not ask IAM for."""
AGO_MS: Final = 3_600_000


class HourAgo(SystemRuntime):
    """What was written then is due now."""

    def now(self) -> int:
        return super().now() - AGO_MS


class Hasty(SystemRuntime):
    """Does not wait before it tries again."""

    def sleep(self, ms: int) -> None:
        pass


class Unreachable:
    """A queue to which nothing can be sent."""

    def send(self, _: object) -> frozenset[int]:
        raise Transient("unreachable")


class Lossy:
    """A queue whose messages nobody receives, so that no worker comes before recovery."""

    def send(self, _: object) -> frozenset[int]:
        return frozenset()


@dataclass(frozen=True)
class Wreck:
    """What crashes left an hour ago: a message that was not sent, a cancelled job whose worker is
    dead and whose ids are stored, a job that cannot be read, and one that waits for a slot."""

    here: Site
    unsent: Job
    dead: Job
    odd: Job
    held: Job

    @classmethod
    def of(cls, here: Site) -> Self:
        queues: Any = {Lane.SMALL: Unreachable(), Lane.BULK: Lossy()}
        limits = Limits(small_max_items=1, tenant_slots_bulk=2)
        world = replace(here.world, runtime=HourAgo(), limits=limits, queues=queues)

        def made(subject: str, ids: list[str]) -> Job:
            return here.submit(ids, subject, world)

        long_ids = [f"{number:0250}" for number in range(LONG)]
        unsent, dead = made("unsent", ["a"]), made("dead", long_ids)
        odd, held = made("odd", ["a", "b"]), made("held", ["a", "b"])
        begun = begin_attempt(world, dead, worker="w", receipt="none", expired=None).transaction
        here.world.store.transact(begun.action, list(begun.writes.values()))
        control.cancel(world, here.tenant, dead.id)
        spoilt = Update(job_key(odd.id), set={"attempt": "no number"})
        here.world.store.transact("spoil", [spoilt])
        return cls(here, unsent, dead, odd, held)

    @property
    def left(self) -> set[str]:
        """What is as it was."""
        world = self.here.world
        return {
            *(f"{job.subject}: taken" for job in (self.dead, self.odd) if self._has_lease(job)),
            *(
                f"{job.subject}: not sent"
                for job in (self.unsent, self.held)
                if is_unsent(world, self.here.job(job))
            ),
            *({"held: waits"} if self.here.job(self.held).held else ()),
            *({"dead: its list"} if self.here.job(self.dead).cleanup else ()),
        }

    def _has_lease(self, job: Job) -> bool:
        return self.here.lease(job).get("job_id") == job.id


@pytest.fixture(scope="module")
def standing(enforced: LocalStack) -> LocalStack:
    """The stack, whose schedule runs no recovery from here on."""
    stand_still(enforced)
    return enforced


def arn_end(stack: LocalStack, resource: str) -> str:
    """How the ARN of a resource ends, by the name of the output that has its name."""
    output, *part = resource.split("/", 1)
    return "/".join((stack.deployed.outputs[output].rpartition("/")[2], *part))


def test_these_are_the_grants_of_recovery(standing: LocalStack) -> None:
    [document] = policies_of(standing, "RecoveryRole").values()
    ends = [(action, arn_end(standing, resource)) for action, resource in RECOVERY]
    left = [each for each in given(document) if each[0] not in LOGS]
    matching = [
        [end for end in ends if action == end[0] and resource.endswith(end[1])]
        for action, resource in left
    ]
    assert [len(found) for found in matching] == [1] * len(RECOVERY)


def test_with_all_of_them_recovery_mends_what_crashes_left(standing: LocalStack) -> None:
    wreck = Wreck.of(Site(standing, "wrecked"))
    assert wreck.left == {"unsent: not sent", "dead: taken", "odd: taken", "held: waits"}
    assert "FunctionError" not in recovered(standing)
    assert wreck.left == set()


@pytest.fixture(scope="module")
def signed(standing: LocalStack) -> Site:
    """What recovery's code works with when it runs here, signed as its role."""
    role = standing.clients.iam.get_role(RoleName=name_of(standing, "RecoveryRole"))["Role"]
    return Site(standing, "any", role=role["Arn"])


@pytest.mark.parametrize(("action", "resource"), RECOVERY)
def test_without_one_of_them_recovery_leaves_something(
    standing: LocalStack, signed: Site, action: str, resource: str
) -> None:
    """In the function it would wait before it tries a refused call again."""
    leaves = RECOVERY[action, resource]
    wreck = Wreck.of(Site(standing, f"without-{list(RECOVERY).index((action, resource))}"))
    with without(standing, "RecoveryRole", action, arn_end(standing, resource)):
        Recovery(replace(signed.world, runtime=Hasty())).run()
    assert wreck.left == leaves

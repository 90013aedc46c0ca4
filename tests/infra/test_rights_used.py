"""IAM proved: each role may do what the code's calls need, and nothing else.

The code runs here on moto, along every path that makes a kind of call; the calls are held against
the synthesised template. A right too few fails, and so does one too many.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest

from handlers.jobs.execution.heartbeat import Heartbeat
from handlers.jobs.lifecycle.recovery import Recovery
from handlers.jobs.storage.control_table import job_key, lease_key
from handlers.jobs.storage.shards import recording_shards
from handlers.jobs.storage.small_dwell import read_dwells
from handlers.jobs.transitions.attempt import begin_attempt
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.ports import Runtime
from handlers.jobs.words.writes import Key
from infra.grants import TRANSACT
from tests.handlers.deployment import TENANT, Deployment, deployed, job
from tests.infra.grants import ROLES, statements
from tests.infra.synthesis import Synthesised
from tests.support import aws
from tests.support.rights import Recorder, Right, given, grants, record, refused
from tests.support.sqs import sqs_record

LOGS: Final = ("logs:CreateLogStream", "logs:PutLogEvents")
POLLER: Final = {
    (f"sqs:{action}", "small")
    for action in ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
}
AGENT: Final = {"ecs:GetTaskProtection", "ecs:UpdateTaskProtection"}
"""What AWS does with the role on the code's behalf: the function's log; the messages, which
Lambda's poller takes; the protection of a task, which its agent asks for when
``handlers.aws.protection`` calls it over HTTP."""

FALLBACK: Final = {("dynamodb:GetItem", "idempotency")}
"""Powertools reads a record when the answer to a refused write came without its item."""
UNRECORDED: Final = {"SmallLane": POLLER, "Api": FALLBACK}

LIMITS: Final = Limits(small_max_items=200, tenant_slots_small=1, tenant_slots_bulk=1)
LONG: Final = [f"{n:0250}" for n in range(300)]
"""Ids that a job keeps in the bucket; a small one, too."""
ALL: Final = {"all": [{"field": "price", "op": "gte", "value": 0}]}
PART: Final = 9 * 1024**2
"""Larger than one part."""


@dataclass(frozen=True)
class Ahead:
    """A runtime whose clock is two days ahead: leases have expired, and everything is due."""

    runtime: Runtime

    def now(self) -> int:
        return self.runtime.now() + 2 * 86_400_000

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runtime, name)


@dataclass(frozen=True)
class Site:
    """A deployment whose calls are recorded, each under the role that makes it when deployed."""

    stack: Deployment
    recorder: Recorder
    ids: Sequence[str]
    """Of records that are there."""

    # --- the API ------------------------------------------------------------------------------

    def ask(self, method: str, path: str, body: object = None, **more: Any) -> Any:
        with self.recorder.acting("Api"):
            answer = self.stack.call(method, path, body, **more)
        assert answer.status < 500, answer
        return answer.body

    def create(self, subject: str, ids: Sequence[str], **more: Any) -> str:
        return str(self.ask("POST", "/v1/jobs", job(ids, subject, **more))["id"])

    def over(self, subject: str, **selection: object) -> Any:
        body = {name: value for name, value in job([], subject).items() if name != "ids"}
        return self.ask("POST", "/v1/jobs", {**body, **selection})

    def upload(self, ids: Sequence[str]) -> str:
        form = self.ask("POST", "/v1/uploads", {"format": "jsonl"})
        prefix = "x-amz-meta-"
        fields: Mapping[str, str] = form["fields"]
        self.stack.made.s3.put_object(
            Bucket=aws.BUCKET,
            Key=fields["key"],
            Body="".join(f"{json.dumps(id_)}\n" for id_ in ids).encode(),
            Metadata={
                name.removeprefix(prefix): value
                for name, value in fields.items()
                if name.startswith(prefix)
            },
        )
        return str(form["upload_id"])

    # --- workers ------------------------------------------------------------------------------

    def small(self, *, remaining: int = 29_000) -> None:
        """The mapping's poller receives, and deletes what does not come back."""
        [delivery] = self.stack.receive()
        with self.recorder.acting("SmallLane"):
            back = self.stack.invoke([sqs_record(delivery)], remaining=remaining)
        if not back:
            self.stack.world.queues[Lane.SMALL].delete(delivery.receipt)

    def bulk(self) -> None:
        with self.recorder.acting("BulkLane"):
            self.stack.run(Lane.BULK)

    def beat(self, lane: Lane, role: str, job_id: str) -> None:
        [delivery] = self.stack.receive(lane)
        world, found = self.stack.world, self.stack.job(job_id)
        transition = begin_attempt(world, found, worker="w", receipt=delivery.receipt, expired=None)
        transaction = transition.transaction
        world.store.transact(transaction.action, list(transaction.writes.values()))
        with self.recorder.acting(role):
            Heartbeat(world, transition.after, delivery)._beat()

    def drain(self, lane: Lane) -> None:
        while self.stack.messages(lane)[0]:
            self.small() if lane is Lane.SMALL else self.bulk()

    def change(self, key: Key, name: str, value: Mapping[str, str]) -> None:
        self.stack.made.dynamodb.update_item(
            TableName=aws.CONTROL,
            Key={"pk": {"S": key.pk}, "sk": {"S": key.sk}},
            UpdateExpression="SET #name = :value",
            ExpressionAttributeNames={"#name": name},
            ExpressionAttributeValues={":value": value},
        )

    def stopped_while_writing(self, role: str) -> None:
        """A list or report of more than one part, whose writer is stopped in the middle."""

        def blocks() -> Iterator[bytes]:
            yield b" " * PART
            raise Transient("stopped")

        with self.recorder.acting(role), pytest.raises(Transient):
            self.stack.world.payloads.put("ids/stopped", blocks())

    # --- recovery -----------------------------------------------------------------------------

    def recover(self) -> None:
        world = replace(self.stack.world, runtime=Ahead(self.stack.world.runtime))
        with self.recorder.acting("Recovery"):
            Recovery(recording_shards(world)).run()


def create_and_look(site: Site) -> None:
    ids = site.ids[:3]
    first, second = site.create("a", ids), site.create("b", ids)  # held: there is one slot
    site.ask("POST", f"/v1/jobs/{first}/cancel")  # frees the slot for the second
    site.create("long", LONG)
    site.ask("POST", "/v1/jobs", job(LONG, "long"))  # taken: its list goes
    for _ in range(2):
        site.ask("POST", "/v1/jobs", job(ids[:1], "key"), headers={"Idempotency-Key": "k"})
    site.ask("POST", "/v1/jobs", job(LONG, "long"), headers={"Idempotency-Key": "refused"})
    site.over("few", upload_id=site.upload(ids))
    site.over("gone", upload_id="0" * 32)
    site.over("query", query=ALL)
    site.ask("POST", "/v1/jobs", job(ids, "looked"), query={"validate_only": "true"})
    for path in ("/v1/jobs", "/v1/lanes", f"/v1/jobs/{second}", f"/v1/jobs/{second}/items"):
        site.ask("GET", path)
    site.ask("POST", f"/v1/jobs/{first}/report")
    site.stopped_while_writing("Api")


def small_lane(site: Site) -> None:
    ids = site.ids[:3]
    site.drain(Lane.SMALL)
    site.create("first", ids)
    site.create("second", ids)  # held until the first is done
    site.drain(Lane.SMALL)
    site.create("promoted", ids)
    site.small(remaining=500)
    site.create("deletes", site.ids[-3:], operation="delete_records", params={})
    site.create("stored", LONG[:150])
    gone = site.create("gone list", LONG[:150])
    site.stack.made.s3.delete_object(Bucket=aws.BUCKET, Key=f"ids/{gone}")
    failed = site.create("failed", ids, params={"field": "no", "add": 1})
    site.drain(Lane.SMALL)
    site.ask("POST", f"/v1/jobs/{failed}/retry", query={"failed_only": "true"})
    site.drain(Lane.SMALL)
    site.beat(Lane.SMALL, "SmallLane", site.create("beating", ids))
    # Its worker is dead, and the next request for the subject takes its place.
    site.change(lease_key(TENANT, "beating"), "expires_at", {"N": "1"})
    site.create("beating", ids)


def bulk_lane(site: Site) -> None:
    site.drain(Lane.BULK)
    site.create("next", LONG)
    site.create("held", LONG)
    site.drain(Lane.BULK)
    site.over("file", upload_id=site.upload(LONG))
    site.over("walk", query=ALL)
    site.create("all", site.ids, operation="delete_records", params={})
    gone = site.create("gone", LONG)
    site.stack.made.s3.delete_object(Bucket=aws.BUCKET, Key=f"ids/{gone}")
    site.drain(Lane.BULK)
    site.stopped_while_writing("BulkLane")
    with site.recorder.acting("BulkLane"):
        read_dwells(site.stack.world, since=0)


def recover(site: Site) -> None:
    beaten = site.create("beaten", LONG)
    site.beat(Lane.BULK, "BulkLane", beaten)
    site.ask("POST", f"/v1/jobs/{beaten}/cancel")  # its worker never comes back to hear of it
    site.create("waits", LONG)  # for the slot of the first
    odd = site.create("odd", site.ids[:3])
    site.change(job_key(odd), "state", {"S": "OF_A_NEWER_VERSION"})
    site.recover()
    site.recover()


@pytest.fixture(scope="module")
def needed() -> Iterator[Mapping[str, set[Right]]]:
    """The rights that the code's calls need, by role."""
    with pytest.MonkeyPatch.context() as patch, deployed(patch, limits=LIMITS) as stack:
        recorder = record(patch)
        site = Site(stack, recorder, stack.fill(250))
        create_and_look(site)
        small_lane(site)
        bulk_lane(site)
        recover(site)
        yield recorder.needed


def rights(stack: Synthesised, role: str) -> set[Right]:
    return {
        (action, resource)
        for action, resource in given(list(statements(stack, ROLES[role])))
        if action not in LOGS and action not in AGENT
    }


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_what_its_calls_need(
    stack: Synthesised, needed: Mapping[str, set[Right]], role: str
) -> None:
    assert needed[role] - rights(stack, role) == set()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_nothing_that_no_call_needs(
    stack: Synthesised, needed: Mapping[str, set[Right]], role: str
) -> None:
    assert rights(stack, role) - needed[role] - UNRECORDED.get(role, set()) == set()


@pytest.mark.parametrize("role", ROLES)
def test_each_grant_that_is_taken_away_refuses_a_call(
    stack: Synthesised, needed: Mapping[str, set[Right]], role: str
) -> None:
    """Decided as the local AWS does it. A right that two statements give is one too many."""
    given_now = grants(list(statements(stack, ROLES[role])))
    of_aws = {
        (each["Action"], each["Resource"])
        for each in given_now
        if each["Action"] in AGENT.union(LOGS)
    }
    calls = needed[role] | UNRECORDED.get(role, set()) | of_aws
    assert refused(given_now, calls) == set()
    unused = [
        grant
        for position, grant in enumerate(given_now)
        if not refused(given_now[:position] + given_now[position + 1 :], calls)
    ]
    assert unused == []


def test_a_right_too_few_and_one_too_many_are_seen(stack: Synthesised) -> None:
    policy = copy.deepcopy(stack.properties("IAM::Policy", "RecoveryRole"))
    before = rights(stack, "Recovery")
    (jobs,) = (
        each
        for each in policy["PolicyDocument"]["Statement"]
        if "dynamodb:GetItem" in each["Action"]
    )
    jobs["Action"] = [*jobs["Action"], "dynamodb:Scan"]
    more = stack.spoiled("IAM::Policy", "RecoveryRole", **policy)
    assert rights(more, "Recovery") - before == {("dynamodb:Scan", "control")}
    jobs["Action"] = ["dynamodb:GetItem"]
    fewer = stack.spoiled("IAM::Policy", "RecoveryRole", **policy)
    assert before - rights(fewer, "Recovery") == {(action, "control") for action in TRANSACT}

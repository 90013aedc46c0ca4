"""What the tables and queues of a local stack say: not what anybody answers about them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel, ConfigDict

from handlers.aws.attributes import decode
from handlers.jobs.storage.control_table import job_key
from handlers.jobs.words.job import Lane
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Item
from handlers.settings import WorkSettings
from scripts.local.stack import LocalStack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

JOB: Final = "JOB"
DISPATCH: Final = "DISPATCH#"


class JobRow(BaseModel):
    """A job's item without its ids. Times are UTC epoch milliseconds."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    tenant: str
    subject: str
    lane: Lane
    state: State
    total: int | None = None
    position: int
    succeeded: int
    failed: int
    skipped: int
    attempt: int
    created_at: int
    admitted_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    worked_ms: int = 0
    """The time between the beginning of each attempt and its last checkpoint, so far."""
    pace: int | None = None
    worker: str | None = None

    @property
    def dwell_ms(self) -> int | None:
        """See ``Job.dwell_ms``."""
        if self.started_at is None or self.admitted_at is None:
            return None
        return max(0, self.started_at - self.admitted_at)

    @property
    def in_line(self) -> bool:
        """It could start, and no worker has begun it."""
        return self.state is State.QUEUED and self.admitted_at is not None


@dataclass(frozen=True)
class RecordRow:
    version: int
    last_job_id: str | None
    fields: Item


_COLUMNS: Final = {f"#{number}": name for number, name in enumerate(JobRow.model_fields)}
MOST_AT_ONCE: Final = 100
"""Keys of one BatchGetItem."""


class Ledger:
    """Reads one local stack, with full scans: it looks at everything, and is slow about it."""

    def __init__(self, stack: LocalStack) -> None:
        self._stack = stack

    @cached_property
    def settings(self) -> WorkSettings:
        """What the deployed workers were given."""
        task = self._stack.clients.ecs.describe_task_definition(
            taskDefinition=self._stack.deployed.only("AWS::ECS::TaskDefinition")
        )["taskDefinition"]
        [container] = task["containerDefinitions"]
        return WorkSettings.from_env(
            {entry["name"]: entry["value"] for entry in container["environment"]}
        )

    @property
    def bulk_slots(self) -> int:
        """Jobs the running bulk workers work on at once."""
        return len(self._stack.workers.running) * self.settings.bulk_slots

    @property
    def small_slots(self) -> int:
        """Jobs the small lane works on at once."""
        mappings = self._stack.clients.lambda_.list_event_source_mappings()["EventSourceMappings"]
        return sum(
            mapping["ScalingConfig"]["MaximumConcurrency"]
            for mapping in mappings
            if "ScalingConfig" in mapping
        )

    def jobs(self) -> dict[str, JobRow]:
        """All jobs by id."""
        items = self._scan(
            self.settings.control_table, "sk = :job", {":job": {"S": JOB}}, columns=_COLUMNS
        )
        rows = [JobRow.model_validate(item) for item in items]
        return {row.id: row for row in rows}

    def jobs_of(self, ids: Sequence[str]) -> list[JobRow]:
        """These jobs, in that order. It reads nothing else: the database that is measured does
        little for it. Raises KeyError when one does not exist."""
        found: dict[str, JobRow] = {}
        table, unique = self.settings.control_table, list(dict.fromkeys(ids))
        for first in range(0, len(unique), MOST_AT_ONCE):
            keys = [_key(id_) for id_ in unique[first : first + MOST_AT_ONCE]]
            wanted: Any = {
                table: {
                    "Keys": keys,
                    "ConsistentRead": True,
                    "ProjectionExpression": ", ".join(_COLUMNS),
                    "ExpressionAttributeNames": dict(_COLUMNS),
                }
            }
            while wanted:
                answer = self._stack.clients.dynamodb.batch_get_item(RequestItems=wanted)
                for item in answer["Responses"].get(table, []):
                    row = JobRow.model_validate(decode(item))
                    found[row.id] = row
                wanted = answer.get("UnprocessedKeys")
        return [found[id_] for id_ in ids]

    def undispatched(self) -> set[str]:
        """Ids of the jobs whose message still has to be sent."""
        condition, values = "begins_with(sk, :dispatch)", {":dispatch": {"S": DISPATCH}}
        items = self._scan(self.settings.control_table, condition, values)
        return {str(item["pk"]).removeprefix("JOB#") for item in items}

    def messages(self, lane: Lane) -> int:
        """In the lane's queue, waiting or in flight."""
        url = self.settings.small_queue_url if lane is Lane.SMALL else self.settings.bulk_queue_url
        answer = self._stack.clients.sqs.get_queue_attributes(
            QueueUrl=url,
            AttributeNames=["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"],
        )["Attributes"]
        return sum(map(int, answer.values()))

    def records(self, tenants: Collection[str]) -> dict[tuple[str, str], RecordRow]:
        """All records of these tenants, by tenant and id."""
        settings = self.settings
        found = {}
        for item in self._scan(settings.records_table):
            tenant = str(item[settings.records_tenant_key])
            if tenant in tenants:
                found[tenant, str(item[settings.records_id_key])] = _record(item)
        return found

    def _scan(
        self,
        table: str,
        condition: str | None = None,
        values: Mapping[str, Mapping[str, str]] | None = None,
        *,
        columns: Mapping[str, str] | None = None,
    ) -> Iterator[Item]:
        more: dict[str, Any] = {}
        if condition:
            more |= {"FilterExpression": condition, "ExpressionAttributeValues": values}
        if columns:
            more |= {
                "ProjectionExpression": ", ".join(columns),
                "ExpressionAttributeNames": columns,
            }
        scan = self._stack.clients.dynamodb.get_paginator("scan")
        pages = scan.paginate(TableName=table, ConsistentRead=True, **more)
        for page in pages:
            for item in page["Items"]:
                yield decode(item)


def _key(job_id: str) -> dict[str, AttributeValueTypeDef]:
    key = job_key(job_id)
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def _record(item: Item) -> RecordRow:
    version, last = item.get("version", 0), item.get("last_job_id")
    if not isinstance(version, int):
        raise TypeError(f"a record's version is {version!r}")
    return RecordRow(version, last if isinstance(last, str) else None, item)

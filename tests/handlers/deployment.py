"""A deployment on moto, the events its functions get, and a look at all that it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from botocore.endpoint import Endpoint
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.dynamodb.models import dynamodb_backends

from handlers import api, bootstrap, small_lane
from handlers.jobs.execution.decisions import apply_decision
from handlers.jobs.execution.stopping import Worker
from handlers.jobs.execution.worker import on_message
from handlers.jobs.storage.control_table import read_job
from handlers.jobs.words.job import Lane
from handlers.jobs.words.limits import Limits
from handlers.jobs.words.timing import LaneTiming
from handlers.settings import WorkSettings
from handlers.testing.world import SHORT
from handlers.web import idempotency
from tests.support import aws
from tests.support.openapi import check_answer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pytest

    from handlers.jobs.execution.decisions import Decision
    from handlers.jobs.words.job import Job
    from handlers.jobs.words.ports import Delivery, World

TENANT: Final = "acme"
SCOPES: Final = "jobs:read jobs:write"
STAGE: Final = "/live"
IDEMPOTENCY: Final = "idempotency"
# So long that on a slow machine no heartbeat, redelivery or expiry comes into a test by itself.
PATIENT: Final = LaneTiming(heartbeat=3000, lease_ttl=9000, visibility=20_000)
TIMING: Final = SHORT.model_copy(
    update={
        "small": PATIENT,
        "bulk": PATIENT,
        "takeover_grace": 30_000,
        "lost_after": 40_000,
        "hang_after": 30_000,
    }
)


@dataclass(frozen=True)
class Context:
    """What Lambda tells a function about its invocation."""

    remaining: int = 29_000
    function_name: str = "function"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:eu-west-1:123456789012:function:function"
    aws_request_id: str = "6e0f6d2c-8c1e-4c4f-9a55-5f3e0b7a1111"

    def get_remaining_time_in_millis(self) -> int:
        return self.remaining


@dataclass(frozen=True)
class Answer:
    """What API Gateway would send on."""

    status: int
    headers: Mapping[str, str]
    body: Any
    text: str = ""
    """The body as it was sent."""


@dataclass
class Deployment:
    made: aws.Clients
    urls: Mapping[Lane, str]
    world: World
    requests: list[str] = field(default_factory=list)
    """Every HTTP request any AWS client made, as Service.Operation; the SDK's retries count."""

    # --- the API ------------------------------------------------------------------------------

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        tenant: str | None = TENANT,
        query: Mapping[str, str | list[str]] | None = None,
        headers: Mapping[str, str] | None = None,
        remaining: int = 29_000,
        scopes: str = SCOPES,
        principal: str | None = None,
        documented: bool = True,
        base: str = STAGE,
        left: str = "",
        **event: object,
    ) -> Answer:
        """Through the real handler. body: text, or anything that becomes JSON. query: a list is a
        parameter that comes several times. documented: hold the answer against the
        document. base, left: see ``rest_event``."""
        made = rest_event(
            method,
            path,
            body,
            tenant=tenant,
            query=query,
            headers=headers,
            scopes=scopes,
            principal=principal,
            base=base,
            left=left,
        )
        result = api.handler({**made, **event}, Context(remaining))  # type: ignore[arg-type]  # the parts of a context that are used
        many = result["multiValueHeaders"]
        answer = Answer(
            result["statusCode"],
            {name.lower(): values[0] for name, values in many.items()},
            json.loads(result["body"]) if result["body"] else None,
            result["body"] or "",
        )
        if documented:
            check_answer(
                method, path.removeprefix(STAGE), answer.status, answer.headers, answer.body
            )
        return answer

    def create(self, ids: Sequence[str], subject: str = "products", **more: Any) -> Answer:
        call = {name: more.pop(name) for name in ("headers", "tenant", "remaining") if name in more}
        return self.call("POST", "/v1/jobs", job(ids, subject, **more), **call)

    def created(self, ids: Sequence[str], subject: str = "products", **more: Any) -> str:
        """The new job's id."""
        answer = self.create(ids, subject, **more)
        assert answer.status == 202, answer
        return str(answer.body["id"])

    # --- records and workers ------------------------------------------------------------------

    def fill(self, count: int, *, tenant: str = TENANT) -> list[str]:
        ids = [f"r{n:05}" for n in range(count)]
        for id_ in ids:
            self.made.dynamodb.put_item(
                TableName=aws.RECORDS,
                Item={"tenant": {"S": tenant}, "id": {"S": id_}, "price": {"N": "10"}},
            )
        return ids

    def prices(self, ids: Sequence[str]) -> set[object]:
        found = [self.world.records.read(TENANT, ids[n : n + 100]) for n in range(0, len(ids), 100)]
        return {record.fields["price"] for part in found for record in part.values()}

    def receive(self, lane: Lane = Lane.SMALL, limit: int = 1) -> Sequence[Delivery]:
        return self.world.queues[lane].receive(limit, 0)

    def run(self, lane: Lane = Lane.SMALL) -> Decision:
        """Receive one message and serve it as a worker does."""
        [delivery] = self.receive(lane)
        decision = on_message(self.world, delivery, Worker("w1"))
        apply_decision(self.world.queues[lane], delivery, decision)
        return decision

    def invoke(self, records: Sequence[dict[str, Any]], remaining: int = 29_000) -> list[str]:
        """The small lane's function; returns the ids that come back."""
        answer = small_lane.handler({"Records": list(records)}, Context(remaining))  # type: ignore[arg-type]  # the parts of a context that are used
        return [str(failure["itemIdentifier"]) for failure in answer["batchItemFailures"]]

    def job(self, job_id: str) -> Job:
        found = read_job(self.world, job_id)
        assert found is not None
        return found

    # --- all there is -------------------------------------------------------------------------

    def everything(self) -> dict[str, object]:
        """Every item of every table, message count of every queue and object, to be compared."""
        # Where moto keeps them: the answer to a scan costs many times as much, and tests look
        # twice.
        tables = {
            name: sorted(json.dumps(item.to_json(), sort_keys=True) for item in table.all_items())
            for name, table in dynamodb_backends[DEFAULT_ACCOUNT_ID][aws.REGION].tables.items()
        }
        messages = {lane.value: self.messages(lane) for lane in Lane}
        objects = self.made.s3.list_objects_v2(Bucket=aws.BUCKET).get("Contents", [])
        return {**tables, **messages, "objects": [each["Key"] for each in objects]}

    def messages(self, lane: Lane) -> tuple[int, int]:
        """(waiting, in flight)"""
        counts = self.made.sqs.get_queue_attributes(
            QueueUrl=self.urls[lane], AttributeNames=["All"]
        )["Attributes"]
        return (
            int(counts["ApproximateNumberOfMessages"]),
            int(counts["ApproximateNumberOfMessagesNotVisible"]),
        )

    def kept(self, sk: str) -> list[dict[str, Any]]:
        """The control items whose sort key begins like this."""
        found = self.made.dynamodb.scan(TableName=aws.CONTROL)["Items"]
        return [item for item in found if item["sk"]["S"].startswith(sk)]

    @contextmanager
    def counted(self) -> Iterator[list[str]]:
        """The requests made meanwhile."""
        counted: list[str] = []
        before = len(self.requests)
        yield counted
        counted += self.requests[before:]


def job(ids: object, subject: str = "products", **more: object) -> dict[str, Any]:
    """The body of a good request."""
    return {
        "operation": "adjust_number",
        "subject": subject,
        "params": {"field": "price", "add": 1},
        "ids": ids,
        **more,
    }


def upload(stack: Deployment, content: bytes, *, tenant: str = TENANT, **form: object) -> str:
    """The id of a file that a client has sent. form: as in the body of ``POST /v1/uploads``."""
    answer = stack.call("POST", "/v1/uploads", {"format": "jsonl", **form}, tenant=tenant)
    assert answer.status == 201, answer
    fields: Mapping[str, str] = answer.body["fields"]
    prefix = "x-amz-meta-"
    notes = {n.removeprefix(prefix): v for n, v in fields.items() if n.startswith(prefix)}
    stack.made.s3.put_object(Bucket=aws.BUCKET, Key=fields["key"], Body=content, Metadata=notes)
    return str(answer.body["upload_id"])


@contextmanager
def deployed(
    monkeypatch: pytest.MonkeyPatch, *, limits: Limits | None = None
) -> Iterator[Deployment]:
    """A fresh deployment. Its clients are made once for all tests: they hold no state."""
    requests: list[str] = []
    create_request, make_request = Endpoint.create_request, Endpoint.make_request
    one_at_a_time = Lock()

    def atomic(self: Endpoint, operation_model: Any, request_dict: Any) -> Any:
        # moto carries requests out in the caller's thread, with nothing to keep two apart.
        with one_at_a_time:
            return make_request(self, operation_model, request_dict)

    def counting(self: Endpoint, params: dict[str, Any], operation_model: Any = None) -> Any:
        service = operation_model.service_model.service_id
        requests.append(f"{service}.{operation_model.name}")
        return create_request(self, params, operation_model)

    with aws.moto() as made:
        urls = {
            lane: aws.create_queue(made.sqs, lane.value, visibility=TIMING.lane(lane).visibility)
            for lane in Lane
        }
        made.dynamodb.create_table(
            TableName=IDEMPOTENCY,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        )
        monkeypatch.setattr(Endpoint, "create_request", counting)
        monkeypatch.setattr(Endpoint, "make_request", atomic)
        for name, value in settings(urls, limits or Limits()).to_env().items():
            monkeypatch.setenv(name, value)
        forget(everything=limits is not None)
        yield Deployment(made, urls, bootstrap.world(api.SERVICE), requests)
        if limits is not None:
            forget(everything=True)


def settings(urls: Mapping[Lane, str], limits: Limits) -> WorkSettings:
    return WorkSettings(
        control_table=aws.CONTROL,
        records_table=aws.RECORDS,
        idempotency_table=IDEMPOTENCY,
        payload_bucket=aws.BUCKET,
        small_queue_url=urls[Lane.SMALL],
        bulk_queue_url=urls[Lane.BULK],
        timing=TIMING,
        limits=limits,
        bulk_poll_seconds=1,
    )


def forget(*, everything: bool) -> None:
    """Let the next use read the environment again. What a process of the small lane has seen of
    its jobs ends with each deployment: a sample that is due would be a call more."""
    small_lane.dwells.cache_clear()
    if everything:
        for cached in (
            *(bootstrap.work_settings, bootstrap.world),
            *(idempotency._layer, api.callers, api.request_rate),
        ):
            cached.cache_clear()


# --- events -----------------------------------------------------------------------------------


def rest_event(
    method: str,
    path: str,
    body: object = None,
    *,
    tenant: str | None = TENANT,
    query: Mapping[str, str | list[str]] | None = None,
    headers: Mapping[str, str] | None = None,
    scopes: str = SCOPES,
    principal: str | None = None,
    base: str = STAGE,
    left: str = "",
) -> dict[str, Any]:
    """A REST API's proxy event behind a Lambda TOKEN authorizer.

    path: of the route; after the stage, as addresses in answers are, or without it. base: what the
    client requested before the route. left: what API Gateway left of that in the event's path.
    """
    path = path.removeprefix(STAGE)
    sent = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "Host": "abcdef1234.execute-api.eu-west-1.amazonaws.com",
        "X-Amzn-Trace-Id": "Root=1-68a1b2c3-0123456789abcdef01234567",
        **(headers or {}),
    }
    many = {
        name: value if isinstance(value, list) else [value] for name, value in (query or {}).items()
    }
    authorizer = {
        "tenant": tenant,
        "scopes": scopes,
        "principalId": principal or tenant,
        "integrationLatency": 12,
    }
    return {
        "resource": "/{proxy+}",
        "path": left + path,
        "httpMethod": method,
        "headers": sent,
        "multiValueHeaders": {name: [value] for name, value in sent.items()},
        "queryStringParameters": {name: values[-1] for name, values in many.items()} or None,
        "multiValueQueryStringParameters": many or None,
        "pathParameters": {"proxy": path.strip("/")},
        "stageVariables": None,
        "requestContext": {
            "resourceId": "abc123",
            "resourcePath": "/{proxy+}",
            "httpMethod": method,
            "extendedRequestId": "Xyz=",
            "requestTime": "09/Mar/2026:10:11:12 +0000",
            "path": base + path,
            "accountId": "123456789012",
            "protocol": "HTTP/1.1",
            "stage": "live",
            "requestTimeEpoch": 1_773_051_072_000,
            "requestId": "1b7d7c5e-6a0b-4f4e-9a2f-000000000001",
            "identity": {"sourceIp": "192.0.2.1", "userAgent": "curl/8.5.0", "userArn": None},
            "domainName": "abcdef1234.execute-api.eu-west-1.amazonaws.com",
            "apiId": "abcdef1234",
            **({"authorizer": authorizer} if tenant is not None else {}),
        },
        "body": body if body is None or isinstance(body, str) else json.dumps(body),
        "isBase64Encoded": False,
    }

"""IAM proved for places outside: what a deployment's roles may do more than by default, each of its
calls needs, and nothing else is given.

Calls of AWS clients and of the search client are recorded. What AWS does with a role on the code's
behalf, with customer keys and in a network, is in its documentation only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import boto3
import pytest
from botocore.client import BaseClient

from handlers.aws.search_mapping import SearchFields, index_body
from handlers.aws.search_query import SearchQuery
from handlers.aws.wake import WakingQueue
from handlers.effects.event_bus import put
from handlers.effects.secret import from_parameter, from_secrets_manager
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.filters import Filter
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import Message
from handlers.jobs.words.operation import Record
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.runtime import ManualRuntime
from handlers.testing.world import memory_world
from infra.grants import KEY_USE
from tests.infra.grants import DOMAIN, NAT, ROLES, SEARCH, statements
from tests.infra.synthesis import JOINED, Synthesised, settings_of, synthesise
from tests.support.rights import PLACE, Right, grants, refused, rights_of
from tests.support.search import INDEX, Reply, Request, Transport, sink_over

VIA: Final = "kms:ViaService"
REGION: Final = PLACE.partition(":")[0]
FIELDS: Final[SearchFields] = {"price": "number"}
PARAMETER: Final = "/hook/secret"
SECRET: Final = JOINED["effects"]["webhook_secret_arn"]
SECRET_KEY: Final = JOINED["effects"]["webhook_secret_key_arn"]
OUR_KEY: Final = JOINED["key_arn"]
BATCH: Final = Batch(
    "job", 0, "acme", "set_fields", [Projection("a", 2, Record("acme", "a", 2, {}))]
)
NETWORK: Final = {
    (f"ec2:{action}", "*")
    for action in (
        "AssignPrivateIpAddresses",
        "CreateNetworkInterface",
        "DeleteNetworkInterface",
        "DescribeNetworkInterfaces",
        "DescribeSubnets",
        "UnassignPrivateIpAddresses",
    )
}
"""What Lambda does for a function in a network (its guide, the execution role)."""


@pytest.fixture(scope="module")
def outside() -> Synthesised:
    """Every place outside, and no bulk worker when there is nothing to do."""
    return synthesise(
        settings_of(
            effects={
                **SEARCH,
                "search_fields": FIELDS,
                "webhook_url": "https://hook.example",
                "webhook_secret_parameter": PARAMETER,
                "event_bus": "changes",
            },
            query={"source": "search"},
            bulk_lane={**NAT, "min_tasks": 0},
        )
    )


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[Right]:
    """The rights that calls from here on need. Each is answered with as little as does."""
    needed: set[Right] = set()
    answers: Mapping[str, Mapping[str, Any]] = {
        "PutEvents": {"FailedEntryCount": 0},
        "GetParameter": {"Parameter": {"Value": "secret"}},
        "GetSecretValue": {"SecretString": "secret"},
        "DescribeServices": {"services": [{"desiredCount": 0}]},
        "UpdateService": {},
    }

    def calling(self: BaseClient, operation: str, sent: dict[str, Any]) -> Any:
        needed.update(rights_of(self.meta.service_model.service_id, operation, sent))
        return answers[operation]

    monkeypatch.setattr(BaseClient, "_make_api_call", calling)
    return needed


def client(service: str) -> Any:
    return boto3.client(service, region_name=REGION)  # type: ignore[call-overload]  # a name, not a literal


# --- the calls ----------------------------------------------------------------------------------


class Index(Transport):
    """Notes every request, also for the mapping."""

    def __init__(self) -> None:
        super().__init__(_answer, mapping=Reply({INDEX: index_body(RecordSchema(), FIELDS)}))
        self.needed: set[Right] = set()

    def urlopen(self, method: str, url: str, *sent: Any, **more: Any) -> Any:
        path = url.partition("?")[0]
        self.needed.add((f"es:ESHttp{method.title()}", f"{DOMAIN}{path}"))
        return super().urlopen(method, url, *sent, **more)


def _answer(request: Request) -> Reply:
    match request.path.partition("?")[0].rpartition("/")[2]:
        case "_bulk":  # a newer version is there, so the sink looks at it
            refused_ = {"status": 409, "error": {"type": "version_conflict_engine_exception"}}
            return Reply({"items": [{"index": refused_}]})
        case "_mget":
            [id_] = json.loads(request.body)["ids"]
            return Reply({"docs": [{"_id": id_, "found": False}]})
        case "_count":
            return Reply({"count": 0, "_shards": {"failed": 0}})
    return Reply({"hits": {"hits": []}, "_shards": {"failed": 0}})


def indexing() -> set[Right]:
    index = Index()
    sink_over(index).deliver(BATCH)
    return index.needed


def searching() -> set[Right]:
    index = Index()
    client = sink_over(index).client
    query = SearchQuery(client, INDEX, RecordSchema(), ManualRuntime(), FIELDS)
    every = Filter.model_validate({"all": [{"field": "price", "op": "exists", "value": True}]})
    query.page("acme", every, None, 1)
    query.count("acme", every, 1)
    return index.needed


def waking() -> None:
    world = memory_world()
    inner, service = world.queues[Lane.BULK], "cluster/bulk-service"
    queue = WakingQueue(inner, client("ecs"), service, world.runtime, world.telemetry)
    queue.send([Message(job_id="job", lane=Lane.BULK, group="group")])


# --- and the rights -----------------------------------------------------------------------------


def more(made: Synthesised, default: Synthesised, role: str) -> list[dict[str, Any]]:
    """What the role may do there and not by default."""
    before, after = (
        grants(list(statements(template, ROLES[role]))) for template in (default, made)
    )
    return [grant for grant in after if grant not in before]


def check(
    given: Sequence[Mapping[str, Any]], needed: set[Right], through: str | None = None
) -> None:
    """They are enough, and each that is taken away refuses a call. through: the service that uses
    a key."""
    asked = {} if through is None else {VIA: f"{through}.{REGION}.amazonaws.com"}
    assert refused(given, needed, asked) == set()
    unused = [
        grant
        for position, grant in enumerate(given)
        if not refused([*given[:position], *given[position + 1 :]], needed, asked)
    ]
    assert unused == []


@pytest.mark.parametrize("role", ROLES)
def test_places_outside_are_reached_by_who_calls_them(
    outside: Synthesised, stack: Synthesised, called: set[Right], role: str
) -> None:
    put(client("events"), "changes", "Records Changed", "{}")
    if role != "BulkLane":
        waking()
    if role != "Api":
        from_parameter(client("ssm"), PARAMETER)
        called |= indexing()
    if role in {"Api", "BulkLane"}:
        called |= searching()
    if role == "Recovery":
        called.add(("dynamodb:BatchGetItem", "records"))  # whose effects it runs again
    check(more(outside, stack, role), called)


@pytest.mark.parametrize("role", ROLES)
def test_a_customer_key_is_used_through_the_services_that_encrypt_with_it(
    joined: Synthesised, role: str
) -> None:
    given = [each for each in all_of(joined, role) if each["Resource"] == OUR_KEY]
    uses = {(action, OUR_KEY) for action in KEY_USE}
    for service in ("dynamodb", "s3", "sqs"):
        check(given, uses, through=service)
    assert refused(given, uses, {VIA: f"ec2.{REGION}.amazonaws.com"}) == uses
    assert refused(given, uses) == uses


@pytest.mark.parametrize("role", ["SmallLane", "BulkLane", "Recovery"])
def test_who_signs_reads_the_secret_and_opens_it(
    joined: Synthesised, called: set[Right], role: str
) -> None:
    from_secrets_manager(client("secretsmanager"), SECRET)
    called.add(("kms:Decrypt", SECRET_KEY))
    given = [each for each in all_of(joined, role) if each["Resource"] in {SECRET, SECRET_KEY}]
    check(given, called, through="secretsmanager")


@pytest.mark.parametrize("role", ["SmallLane", "Api", "Recovery"])
def test_a_function_in_a_network_has_what_lambda_needs(joined: Synthesised, role: str) -> None:
    check([each for each in all_of(joined, role) if each["Resource"] == "*"], NETWORK)


def all_of(made: Synthesised, role: str) -> list[dict[str, Any]]:
    return grants(list(statements(made, ROLES[role])))

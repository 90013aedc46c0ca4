"""Who may do what: enough for the protocol, and nothing by wildcard."""

from __future__ import annotations

import pytest

from tests.infra.grants import ROLES, actions_on, listed, statements
from tests.infra.synthesis import Synthesised

TRANSACT = {
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
    "dynamodb:DeleteItem",
    "dynamodb:ConditionCheckItem",
}
WORKERS = ("SmallLane", "BulkLane")


@pytest.mark.parametrize("who", ROLES)
def test_a_transaction_over_jobs_may_check_conditions(stack: Synthesised, who: str) -> None:
    assert actions_on(stack, who, "StorageControl") >= {*TRANSACT, "dynamodb:GetItem"}


@pytest.mark.parametrize("who", WORKERS)
def test_a_chunk_may_read_and_change_records(stack: Synthesised, who: str) -> None:
    assert actions_on(stack, who, "StorageRecords") == {
        "dynamodb:BatchGetItem",
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        # A small job's ids are fixed when it is created; it walks nothing.
        *(["dynamodb:Query"] if who == "BulkLane" else []),
    }


def test_only_workers_change_records_and_the_api_only_looks(stack: Synthesised) -> None:
    assert actions_on(stack, "Api", "StorageRecords") == {"dynamodb:BatchGetItem", "dynamodb:Query"}
    assert not actions_on(stack, "Recovery", "StorageRecords")


@pytest.mark.parametrize("who", ROLES)
def test_whoever_makes_or_frees_a_job_may_send_to_its_lane(stack: Synthesised, who: str) -> None:
    lanes = {
        lane
        for lane in ("SmallQueue", "BulkQueue")
        if "sqs:SendMessage" in actions_on(stack, who, lane)
    }
    # A bulk job never becomes a small one.
    assert lanes == ({"BulkQueue"} if who == "BulkLane" else {"SmallQueue", "BulkQueue"})


@pytest.mark.parametrize(
    ("who", "own", "others"),
    [("SmallLane", "SmallQueue", "BulkQueue"), ("BulkLane", "BulkQueue", "SmallQueue")],
)
def test_a_worker_takes_messages_from_its_own_lane_only(
    stack: Synthesised, who: str, own: str, others: str
) -> None:
    taking = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"}
    assert actions_on(stack, who, own) >= taking
    assert not actions_on(stack, who, others) & taking


@pytest.mark.parametrize("who", [*WORKERS, "Api"])
def test_a_list_may_be_written_in_parts_read_and_dropped(stack: Synthesised, who: str) -> None:
    writes = {"s3:PutObject", "s3:AbortMultipartUpload"}
    assert actions_on(stack, who, "StoragePayloads") == {
        "s3:GetObject",
        "s3:DeleteObject",
        "s3:ListBucket",
        *(set() if who == "SmallLane" else writes),
    }


@pytest.mark.parametrize("who", [*WORKERS, "Api"])
def test_a_missing_id_list_looks_missing_and_not_forbidden(stack: Synthesised, who: str) -> None:
    assert "s3:ListBucket" in actions_on(stack, who, "StoragePayloads")


def test_the_bulk_worker_may_protect_tasks_of_its_cluster(stack: Synthesised) -> None:
    (statement,) = [
        statement
        for statement in statements(stack, ROLES["BulkLane"])
        if "ecs:UpdateTaskProtection" in listed(statement["Action"])
    ]
    assert statement["Action"] == ["ecs:GetTaskProtection", "ecs:UpdateTaskProtection"]
    parts = statement["Resource"]["Fn::Join"][1]
    assert any(
        isinstance(part, dict) and str(part.get("Ref", "")).startswith("BulkLaneCluster")
        for part in parts
    )


def test_no_action_is_a_wildcard(stack: Synthesised) -> None:
    given = [
        action
        for policy in stack.of("IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
    ]
    assert given
    assert not [action for action in given if "*" in str(action)]


def test_the_authorizer_may_only_write_its_log(stack: Synthesised) -> None:
    given = [
        action
        for statement in statements(stack, "ApiAuthorizerRole")
        for action in listed(statement["Action"])
    ]
    assert sorted(map(str, given)) == ["logs:CreateLogStream", "logs:PutLogEvents"]

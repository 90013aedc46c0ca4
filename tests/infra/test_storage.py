"""Keys and indexes as the store's vocabulary names them; nothing public, nothing lost."""

from __future__ import annotations

import json

import pytest

from handlers.jobs.results.report import REPORTS
from handlers.jobs.selection.resolve import UPLOADS
from handlers.jobs.words.writes import Index

from .environments import environments
from .grants import ROLES, statements
from .synthesis import Synthesised, app_and_stack, referred, settings_of, synthesise


def test_the_control_table_has_the_indexes_of_the_store(stack: Synthesised) -> None:
    table = stack.properties("DynamoDB::GlobalTable", "StorageControl")
    types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
    assert [key["AttributeName"] for key in table["KeySchema"]] == ["pk", "sk"]
    found = {
        index["IndexName"]: [key["AttributeName"] for key in index["KeySchema"]]
        for index in table["GlobalSecondaryIndexes"]
    }
    assert found == {index.value: [f"{index}_pk", f"{index}_sk"] for index in Index}
    # Items of a page carry all their attributes (ports.Store.query).
    projections = {
        index["Projection"]["ProjectionType"] for index in table["GlobalSecondaryIndexes"]
    }
    assert projections == {"ALL"}
    assert types.pop("due_sk") == "N"
    assert set(types.values()) == {"S"}


@pytest.mark.parametrize(
    ("table", "attribute"),
    [("StorageControl", "expires_at_seconds"), ("StorageIdempotency", "expiration")],
)
def test_history_expires_by_itself(stack: Synthesised, table: str, attribute: str) -> None:
    properties = stack.properties("DynamoDB::GlobalTable", table)
    assert properties["TimeToLiveSpecification"] == {"AttributeName": attribute, "Enabled": True}


def test_records_never_expire(stack: Synthesised) -> None:
    records = stack.properties("DynamoDB::GlobalTable", "StorageRecords")
    assert "TimeToLiveSpecification" not in records
    assert [key["AttributeName"] for key in records["KeySchema"]] == ["tenant", "id"]


def test_every_table_can_be_restored_and_survives_its_stack(stack: Synthesised) -> None:
    for id_, table in stack.of("DynamoDB::GlobalTable").items():
        (replica,) = table["Replicas"]
        assert replica["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] is True
        assert stack.template["Resources"][id_]["DeletionPolicy"] == "RetainExceptOnCreate"
        assert stack.template["Resources"][id_]["UpdateReplacePolicy"] == "Retain"


def test_a_first_deployment_that_is_rolled_back_leaves_nothing(
    stack: Synthesised, other: Synthesised
) -> None:
    kept = {
        id_
        for id_, resource in stack.template["Resources"].items()
        if resource.get("DeletionPolicy", "Delete") == "Retain"
    }
    assert kept == set()
    # DynamoDB would refuse to undo the creation of a protected table.
    protection = {
        bool(table["Replicas"][0].get("DeletionProtectionEnabled"))
        for table in stack.of("DynamoDB::GlobalTable").values()
    }
    assert protection == {False}
    later = [
        table["Replicas"][0]["DeletionProtectionEnabled"]
        for table in other.of("DynamoDB::GlobalTable").values()
    ]
    assert later
    assert all(later)


def test_production_cannot_be_deleted_by_one_command_and_keeps_its_logs(
    stack: Synthesised,
) -> None:
    assert app_and_stack(settings_of())[1].termination_protection is True
    fixed = [
        id_
        for id_ in stack.of("Logs::LogGroup")
        if stack.template["Resources"][id_]["DeletionPolicy"] != "RetainExceptOnCreate"
    ]
    assert [id_ for id_ in fixed if "Edge" not in id_] == []


def test_a_development_stack_leaves_nothing_at_all(dev: Synthesised) -> None:
    policies = {
        resource.get("DeletionPolicy", "Delete") for resource in dev.template["Resources"].values()
    }
    assert policies == {"Delete"}
    (bucket,) = dev.of("S3::Bucket")
    (emptied,) = [
        resource["Properties"]["BucketName"]
        for resource in dev.template["Resources"].values()
        if resource["Type"] == "Custom::S3AutoDeleteObjects"
    ]
    assert referred(emptied) == bucket


def test_the_bucket_is_private_and_forgets_orphans(stack: Synthesised) -> None:
    (bucket,) = stack.of("S3::Bucket").values()
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    rules = {rule["Id"]: rule for rule in bucket["LifecycleConfiguration"]["Rules"]}
    assert set(rules) == {"orphans", "uploads", "reports"}
    assert rules["reports"]["Prefix"] == f"{REPORTS}/"
    assert {rule["Status"] for rule in rules.values()} == {"Enabled"}
    assert "Prefix" not in rules["orphans"]
    assert rules["orphans"]["ExpirationInDays"] == 60
    assert rules["orphans"]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert rules["uploads"]["Prefix"] == f"{UPLOADS}/"
    assert rules["uploads"]["ExpirationInDays"] == 7


def test_nothing_needs_code_at_deployment(stack: Synthesised) -> None:
    kinds = {resource["Type"] for resource in stack.template["Resources"].values()}
    assert not [
        kind for kind in kinds if kind.startswith("Custom::") or kind.endswith("CustomResource")
    ]


RESTORED = {"control_table": "control-2", "records": {"table_name": "records-2"}}


def test_a_deployment_works_on_restored_tables_by_name() -> None:
    restored = synthesise(settings_of(**RESTORED))
    assert list(restored.of("DynamoDB::GlobalTable")) == [
        restored.find("DynamoDB::GlobalTable", "Idempotency")
    ]
    for who, variables in environments(restored):
        if who != "authorizer":
            assert variables["FAIRLANE_CONTROL_TABLE"] == "control-2", who
            assert variables["FAIRLANE_RECORDS_TABLE"] == "records-2", who
    for who in ROLES:
        given = json.dumps(list(statements(restored, ROLES[who])))
        assert ":table/control-2" in given, who
        assert ":table/control-2/index/held" in given, who
    assert restored.template["Outputs"]["ControlTable"]["Value"] == "control-2"


def test_jobs_and_records_need_a_table_each() -> None:
    with pytest.raises(ValueError, match=r"control_table and records\.table_name are both"):
        settings_of(control_table="same", records={"table_name": "same"})


def test_pages_of_named_origins_may_upload_and_read(stack: Synthesised) -> None:
    (closed,) = stack.of("S3::Bucket").values()
    assert "CorsConfiguration" not in closed
    origins = ["https://app.partner.dev", "http://localhost:3000"]
    (bucket,) = synthesise(settings_of(uploads={"origins": origins})).of("S3::Bucket").values()
    (rule,) = bucket["CorsConfiguration"]["CorsRules"]
    assert rule["AllowedOrigins"] == origins
    assert rule["AllowedMethods"] == ["POST", "GET", "HEAD"]


@pytest.mark.parametrize("origin", ["*", "https://*.partner.dev", "https://app.dev/", "app.dev"])
def test_an_origin_is_a_scheme_and_a_host(origin: str) -> None:
    with pytest.raises(ValueError, match=r"uploads\.origins"):
        settings_of(uploads={"origins": [origin]})

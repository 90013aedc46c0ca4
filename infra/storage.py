"""Where state lives: the control table, the records, idempotent answers, id lists."""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .acknowledge import acknowledge
from .settings import DeploySettings

_STRING: Final = dynamodb.AttributeType.STRING
_NUMBER: Final = dynamodb.AttributeType.NUMBER

INDEXES: Final = {"due": _NUMBER, "by_tenant": _STRING, "held": _STRING}
"""Index name to the type of its sort key; the keys are ``<index>_pk`` and ``<index>_sk``."""


class Storage(Construct):
    def __init__(self, scope: Construct, id_: str, *, settings: DeploySettings) -> None:
        super().__init__(scope, id_)
        self._removal = _removal(settings)
        self.control = self._table(
            "Control",
            partition="pk",
            sort="sk",
            indexes=[_index(name, kind) for name, kind in INDEXES.items()],
            expires="expires_at_seconds",
        )
        self.idempotency = self._table("Idempotency", partition="id", expires="expiration")
        self.records = self._records(settings)
        self.payloads = self._payloads(settings)

    def index_arn(self, index: str) -> str:
        return f"{self.control.table_arn}/index/{index}"

    def _table(
        self,
        id_: str,
        *,
        partition: str,
        sort: str | None = None,
        indexes: list[dynamodb.GlobalSecondaryIndexPropsV2] | None = None,
        expires: str | None = None,
    ) -> dynamodb.TableV2:
        return dynamodb.TableV2(
            self,
            id_,
            partition_key=dynamodb.Attribute(name=partition, type=_STRING),
            sort_key=dynamodb.Attribute(name=sort, type=_STRING) if sort else None,
            global_secondary_indexes=indexes,
            # Deletes history and nothing else: it is days late, and no lock waits for it.
            time_to_live_attribute=expires,
            billing=dynamodb.Billing.on_demand(),
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=self._removal == RemovalPolicy.RETAIN,
            removal_policy=self._removal,
        )

    def _records(self, settings: DeploySettings) -> dynamodb.ITable:
        records = settings.records
        if records.table_name is not None:
            return dynamodb.Table.from_table_name(self, "Records", records.table_name)
        return self._table("Records", partition=records.tenant_key, sort=records.id_key)

    def _payloads(self, settings: DeploySettings) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Payloads",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(
                    id="orphans",
                    expiration=Duration.days(settings.payload_days),
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                ),
                s3.LifecycleRule(
                    id="uploads",
                    prefix="uploads/",
                    expiration=Duration.days(settings.upload_days),
                ),
                # Made again whenever somebody asks; their addresses are good for minutes.
                s3.LifecycleRule(id="reports", prefix="reports/", expiration=Duration.days(1)),
            ],
            removal_policy=self._removal,
        )
        acknowledge(
            bucket,
            "S1",
            "Only this stack's roles and the upload forms they sign reach it, each object lives as "
            "long as its job, and who did what is in the functions' logs; CloudTrail data events "
            "are the account's choice.",
        )
        return bucket


def _index(name: str, sort_type: dynamodb.AttributeType) -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=name,
        partition_key=dynamodb.Attribute(name=f"{name}_pk", type=_STRING),
        sort_key=dynamodb.Attribute(name=f"{name}_sk", type=sort_type),
        projection_type=dynamodb.ProjectionType.ALL,
    )


def _removal(settings: DeploySettings) -> RemovalPolicy:
    return RemovalPolicy.RETAIN if settings.removal == "retain" else RemovalPolicy.DESTROY

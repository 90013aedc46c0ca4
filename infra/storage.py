"""Where state lives: the control table, the records, idempotent answers, id lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from aws_cdk import CfnResource, Duration, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from .acknowledge import acknowledge, acknowledge_cdk_function
from .settings import DeploySettings

_STRING: Final = dynamodb.AttributeType.STRING
_NUMBER: Final = dynamodb.AttributeType.NUMBER

REPORT_DAYS: Final = 1
"""How long a report's file is kept; its address is good for minutes."""
INDEXES: Final = {"due": _NUMBER, "by_tenant": _STRING, "held": _STRING}
"""Index name to the type of its sort key; the keys are ``<index>_pk`` and ``<index>_sk``."""


class Storage(Construct):
    """What a deployment keeps; everything else of it can be made again."""

    def __init__(self, scope: Construct, id_: str, *, settings: DeploySettings) -> None:
        super().__init__(scope, id_)
        self.settings: Final = settings
        self._key = key_of(self, settings)
        self._removal = removal_of(settings)
        self.control = self._control(settings)
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
        table = dynamodb.TableV2(
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
            deletion_protection=self.settings.deletion_protection,
            removal_policy=self._removal,
        )
        if self._key is not None:
            _encrypt(table, self._key)
        return table

    def _control(self, settings: DeploySettings) -> dynamodb.ITable:
        if settings.control_table is not None:
            return dynamodb.Table.from_table_name(self, "Control", settings.control_table)
        return self._table(
            "Control",
            partition="pk",
            sort="sk",
            indexes=[_index(name, kind) for name, kind in INDEXES.items()],
            expires="expires_at_seconds",
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
            encryption=(
                s3.BucketEncryption.S3_MANAGED if self._key is None else s3.BucketEncryption.KMS
            ),
            encryption_key=self._key,
            # One call to KMS for many objects.
            bucket_key_enabled=None if self._key is None else True,
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
                # Made again whenever somebody asks.
                s3.LifecycleRule(
                    id="reports", prefix="reports/", expiration=Duration.days(REPORT_DAYS)
                ),
            ],
            cors=_cors(settings.uploads.origins),
            removal_policy=self._removal,
            auto_delete_objects=settings.removal == "purge",
        )
        if settings.removal == "purge":
            acknowledge_cdk_function(self, "Custom::S3AutoDeleteObjectsCustomResourceProvider")
        acknowledge(
            bucket,
            "S1",
            "Only this stack's roles and the upload forms they sign reach it, each object lives as "
            "long as its job, and who did what is in the functions' logs; CloudTrail data events "
            "are the account's choice.",
        )
        return bucket


def _cors(origins: Sequence[str]) -> list[s3.CorsRule] | None:
    """What a browser asks for before it sends an upload form or reads a report."""
    if not origins:
        return None
    return [
        s3.CorsRule(
            allowed_origins=list(origins),
            allowed_methods=[s3.HttpMethods.POST, s3.HttpMethods.GET, s3.HttpMethods.HEAD],
            allowed_headers=["*"],
            exposed_headers=["ETag"],
            max_age=3600,
        )
    ]


def _index(name: str, sort_type: dynamodb.AttributeType) -> dynamodb.GlobalSecondaryIndexPropsV2:
    return dynamodb.GlobalSecondaryIndexPropsV2(
        index_name=name,
        partition_key=dynamodb.Attribute(name=f"{name}_pk", type=_STRING),
        sort_key=dynamodb.Attribute(name=f"{name}_sk", type=sort_type),
        projection_type=dynamodb.ProjectionType.ALL,
    )


def _encrypt(table: dynamodb.TableV2, key: kms.IKey) -> None:
    """By the plain properties: CDK renders a customer key only where the region is known."""
    resource = table.node.default_child
    assert isinstance(resource, CfnResource)
    resource.add_property_override("SSESpecification", {"SSEEnabled": True, "SSEType": "KMS"})
    resource.add_property_override("Replicas.0.SSESpecification.KMSMasterKeyId", key.key_arn)


def key_of(scope: Construct, settings: DeploySettings) -> kms.IKey | None:
    """The customer key, for what is made in this scope."""
    named = settings.key_arn
    return None if named is None else kms.Key.from_key_arn(scope, "Key", named)


def removal_of(settings: DeploySettings) -> RemovalPolicy:
    """Retained, but not what a first deployment made that is rolled back: its next try would make
    all of it again."""
    if settings.removal == "retain":
        return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE
    return RemovalPolicy.DESTROY

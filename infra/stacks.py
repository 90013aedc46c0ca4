"""Everything of a deployment, and what its users need to know of it."""

from __future__ import annotations

from typing import Final

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from constructs import Construct

from handlers.settings import WorkSettings

from .api import Api
from .bulk_lane import BulkLane
from .bundling import dependencies_layer, handlers_code, operations_layer
from .charts import Watched
from .edge import Edge
from .functions import Functions
from .grants import (
    allow,
    allow_bus,
    allow_effects,
    allow_keys,
    allow_queries,
    allow_secret,
    allow_starting,
)
from .lane import Lane
from .monitoring import Monitoring
from .operations import OwnOperations, own_operations
from .recovery import Recovery
from .settings import DeploySettings, in_words
from .small_lane import SmallLane
from .storage import Storage, key_of


class Deployment(Construct):
    """One for each stack, whose outputs are how commands find it (``fairlane.cdk`` has its props).

    state: of another stack, made with the same settings; without it this one has its own. Raises
    OperationsError when the team's own operations cannot be deployed.
    """

    def __init__(
        self, scope: Construct, id_: str, *, settings: DeploySettings, state: Storage | None = None
    ) -> None:
        super().__init__(scope, id_)
        key = key_of(self, settings)
        self.storage: Final = state or Storage(self, "Storage", settings=settings)
        self.small: Final = Lane(
            self, "Small", timing=settings.timing.small, alarms=settings.alarms, key=key
        )
        self.bulk: Final = Lane(
            self, "Bulk", timing=settings.timing.bulk, alarms=settings.alarms, key=key
        )
        own = None if settings.operations is None else own_operations(settings.operations)
        work = work_settings(settings, self.storage, self.small, self.bulk, own)
        environment = work.to_env()
        layers = [dependencies_layer(self, settings)]
        if own is not None and own.requirements:
            layers.append(operations_layer(self, settings, own))
        functions = Functions(settings, handlers_code(own), layers)
        self.bulk_lane: Final = BulkLane(
            self,
            "BulkLane",
            settings=settings,
            storage=self.storage,
            bulk=self.bulk,
            environment=environment,
            own=own,
        )
        if settings.bulk_lane.min_tasks == 0:
            # Whoever sends to the lane starts its first worker; the workers themselves are there.
            environment = work.model_copy(update={"bulk_service": self.bulk_lane.address}).to_env()
        self.small_lane: Final = SmallLane(
            self,
            "SmallLane",
            functions=functions,
            storage=self.storage,
            small=self.small,
            bulk=self.bulk,
            environment=environment,
        )
        self.api: Final = Api(
            self,
            "Api",
            functions=functions,
            storage=self.storage,
            lanes=(self.small, self.bulk),
            environment=environment,
        )
        edge = None
        if settings.waf.mode != "off":
            edge = Edge(self, "Edge", settings=settings, stage=self.api.rest.deployment_stage)
        self.recovery: Final = Recovery(
            self,
            "Recovery",
            functions=functions,
            storage=self.storage,
            lanes=(self.small, self.bulk),
            environment=environment,
        )
        self._outside(settings)
        self._queries(settings)
        for who in (*self._workers(), self.api.function, self.recovery.function):
            allow_keys(Stack.of(self), who, settings)
        if settings.bulk_lane.min_tasks == 0:
            for function in (self.small_lane, self.api, self.recovery):
                allow_starting(function.function, self.bulk_lane.service)
        self.monitoring: Final = Monitoring(
            self,
            "Monitoring",
            settings=settings,
            namespace=work.metrics_namespace,
            watched=Watched(
                small=self.small,
                bulk=self.bulk,
                small_lane=self.small_lane,
                bulk_lane=self.bulk_lane,
                api=self.api,
                recovery=self.recovery,
                storage=self.storage,
                edge=edge,
            ),
        )
        if settings.alarm_topic_arn is not None:
            self._notify(settings.alarm_topic_arn)
        self._outputs()

    def _outside(self, settings: DeploySettings) -> None:
        """Effects run in both lanes, and in recovery, which reads no record otherwise. Whoever
        changes a job tells the bus of it; recovery alone calls what requests name."""
        effects, recovery = settings.effects, self.recovery.function
        allow_bus(Stack.of(self), self.api.function, effects)
        if effects.notify and effects.webhook_url is None:
            allow_secret(Stack.of(self), recovery, effects)
        if not effects.any:
            return
        for who in (*self._workers(), recovery):
            allow_effects(Stack.of(self), who, effects)
        allow(recovery, ("dynamodb:BatchGetItem",), self.storage.records.table_arn)

    def _workers(self) -> tuple[iam.IGrantable, iam.IGrantable]:
        return self.small_lane.function, self.bulk_lane.task.task_role

    def _queries(self, settings: DeploySettings) -> None:
        """The bulk lane walks them, and the API looks before it creates; a small job's ids are
        fixed by then."""
        for who in (self.bulk_lane.task.task_role, self.api.function):
            allow_queries(who, self.storage, settings)

    def _notify(self, topic_arn: str) -> None:
        topic = sns.Topic.from_topic_arn(self, "AlarmTopic", topic_arn)
        scaling = self.bulk_lane.service.node.find_all()
        for child in self.node.find_all():
            # Scaling's own alarms are business as usual.
            if isinstance(child, cloudwatch.Alarm) and child not in scaling:
                child.add_alarm_action(actions.SnsAction(topic))

    def _outputs(self) -> None:
        values = {
            "ApiUrl": self.api.rest.url,
            "ControlTable": self.storage.control.table_name,
            "RecordsTable": self.storage.records.table_name,
            "IdempotencyTable": self.storage.idempotency.table_name,
            "PayloadBucket": self.storage.payloads.bucket_name,
            "SmallQueueUrl": self.small.queue.queue_url,
            "SmallDeadLettersUrl": self.small.dead_letters.queue_url,
            "BulkQueueUrl": self.bulk.queue.queue_url,
            "BulkDeadLettersUrl": self.bulk.dead_letters.queue_url,
            "BulkCluster": self.bulk_lane.cluster.cluster_name,
            "BulkService": self.bulk_lane.service.service_name,
            "BulkTaskDefinition": self.bulk_lane.task.task_definition_arn,
            "Dashboard": self.monitoring.dashboard.dashboard_name,
        }
        if (role := self.api.demo_role) is not None:
            values["DemoRole"] = role.role_arn
        for name, value in values.items():
            # By these names, whatever the construct is called.
            CfnOutput(self, name, value=value).override_logical_id(name)


def work_settings(
    settings: DeploySettings,
    storage: Storage,
    small: Lane,
    bulk: Lane,
    own: OwnOperations | None,
) -> WorkSettings:
    with in_words():
        return WorkSettings(
            # Two deployments of an account never mix.
            metrics_namespace=settings.stack_name,
            control_table=storage.control.table_name,
            records_table=storage.records.table_name,
            records_tenant_key=settings.records.tenant_key,
            records_id_key=settings.records.id_key,
            idempotency_table=storage.idempotency.table_name,
            payload_bucket=storage.payloads.bucket_name,
            small_queue_url=small.queue.queue_url,
            bulk_queue_url=bulk.queue.queue_url,
            due_shards=settings.due_shards,
            timing=settings.timing,
            limits=settings.limits,
            effects=settings.effects.told,
            query=settings.query,
            pace=settings.pace,
            tenant_requests_per_second=settings.api.tenant_requests_per_second,
            operations=None if own is None else own.package,
            bulk_slots=settings.bulk_lane.slots,
            bulk_poll_seconds=settings.bulk_lane.poll_seconds,
            bulk_protection_minutes=settings.bulk_lane.protection_minutes,
        )

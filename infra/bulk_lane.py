"""The bulk lane's workers: a Fargate service with as many tasks as its messages need, waiting or in
flight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aws_cdk import Duration, Size, Stack
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecr_assets as assets
from aws_cdk import aws_ecs as ecs
from constructs import Construct

from .acknowledge import acknowledge, acknowledge_payload_objects
from .bundling import image_context
from .functions import log_group, powertools_env
from .grants import WRITE, allow, allow_payloads, allow_rows, allow_sending, allow_work
from .lane import Lane
from .network import place_of_workers
from .operations import OwnOperations
from .scaling import scale
from .settings import DeploySettings
from .storage import Storage

SCRATCH: Final = "scratch"
COMMAND: Final = ("python", "-m", "handlers.bulk_worker")

_PLATFORMS: Final = {
    "arm64": (ecs.CpuArchitecture.ARM64, assets.Platform.LINUX_ARM64),
    "x86_64": (ecs.CpuArchitecture.X86_64, assets.Platform.LINUX_AMD64),
}


class BulkLane(Construct):
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        settings: DeploySettings,
        storage: Storage,
        bulk: Lane,
        environment: Mapping[str, str],
        own: OwnOperations | None = None,
    ) -> None:
        super().__init__(scope, id_)
        place = place_of_workers(self, settings)
        self.cluster: Final = ecs.Cluster(
            self,
            "Cluster",
            vpc=place.vpc,
            container_insights_v2=ecs.ContainerInsights.ENABLED,
            enable_fargate_capacity_providers=settings.bulk_lane.spot_percent > 0,
        )
        self.task: Final = self._task(settings, environment, own)
        self._grant(storage, bulk)
        self.service: Final = ecs.FargateService(
            self,
            "Service",
            cluster=self.cluster,
            task_definition=self.task,
            capacity_provider_strategies=_capacity(settings.bulk_lane.spot_percent),
            # No desired count: a deployment would set it and stop workers that scaling started.
            vpc_subnets=place.subnets,
            security_groups=place.groups,
            assign_public_ip=place.public_ip,
            # New tasks first: a deployment never leaves the lane without a worker.
            min_healthy_percent=100,
            max_healthy_percent=200,
            circuit_breaker=ecs.DeploymentCircuitBreaker(rollback=True),
            # Moving a task to another zone would interrupt its jobs for nothing.
            availability_zone_rebalancing=ecs.AvailabilityZoneRebalancing.DISABLED,
        )
        if (network := self.node.try_find_child("Network")) is not None:
            # Without its routes and endpoints a task pulls no image, and the first deployment's
            # circuit breaker would count that.
            self.service.node.add_dependency(network)
        scale(self.service, bulk, settings.bulk_lane)

    @property
    def address(self) -> str:
        """``<cluster>/<service>``."""
        return f"{self.cluster.cluster_name}/{self.service.service_name}"

    def _task(
        self,
        settings: DeploySettings,
        environment: Mapping[str, str],
        own: OwnOperations | None,
    ) -> ecs.FargateTaskDefinition:
        task = ecs.FargateTaskDefinition(
            self,
            "Task",
            cpu=settings.bulk_lane.cpu,
            memory_limit_mib=settings.bulk_lane.memory,
            runtime_platform=ecs.RuntimePlatform(
                cpu_architecture=_PLATFORMS[settings.architecture][0],
                operating_system_family=ecs.OperatingSystemFamily.LINUX,
            ),
        )
        task.add_volume(name=SCRATCH)
        worker = task.add_container(
            "worker",
            image=self._image(settings, own),
            # Exec form, so that Python itself gets SIGTERM; as process 1 it would not hear one
            # that comes before its handler is set.
            entry_point=list(COMMAND),
            linux_parameters=ecs.LinuxParameters(self, "Process", init_process_enabled=True),
            environment={**environment, **powertools_env(settings)},
            health_check=ecs.HealthCheck(
                # Refused receives, missing rights and hung starts: a deployment of such tasks trips
                # the circuit breaker, and a running one is replaced.
                command=["CMD", "python", "-m", "handlers.health"],
                interval=Duration.seconds(30),
                timeout=Duration.seconds(10),
                retries=3,
                start_period=Duration.seconds(120),
            ),
            readonly_root_filesystem=True,
            stop_timeout=Duration.seconds(settings.timing.stop_timeout),
            logging=ecs.LogDrivers.aws_logs(
                stream_prefix="bulk",
                log_group=log_group(self, "Logs", settings),
                # Lines are lost before a worker waits for its log.
                mode=ecs.AwsLogDriverMode.NON_BLOCKING,
                max_buffer_size=Size.mebibytes(25),
            ),
        )
        # The one place that can be written to; the image gives it the rights of any /tmp.
        worker.add_mount_points(
            ecs.MountPoint(container_path="/tmp", source_volume=SCRATCH, read_only=False)  # noqa: S108  in the container
        )
        acknowledge(
            task,
            "ECS2",
            "Names, addresses and durations, like the functions' variables; no secret.",
        )
        acknowledge(
            task,
            "IAM5[Resource::*]",
            "The execution role's ecr:GetAuthorizationToken, which knows no resource.",
        )
        return task

    def _image(self, settings: DeploySettings, own: OwnOperations | None) -> ecs.ContainerImage:
        lane = settings.bulk_lane
        if lane.image_uri is not None:
            return ecs.ContainerImage.from_registry(lane.image_uri)
        if (named := lane.repository) is not None:
            by = (
                ecr.Repository.from_repository_arn
                if named.name.startswith("arn:")
                else ecr.Repository.from_repository_name
            )
            # Lets the execution role pull.
            return ecs.ContainerImage.from_ecr_repository(
                by(self, "Repository", named.name), named.image
            )
        return ecs.ContainerImage.from_asset(
            str(image_context(own)),
            file="Dockerfile",
            build_args=None if lane.base_image is None else {"BASE": lane.base_image},
            platform=_PLATFORMS[settings.architecture][1],
        )

    def _grant(self, storage: Storage, queue: Lane) -> None:
        role = self.task.task_role
        allow_work(role, storage)
        # An attempt writes the id list of a file or snapshot itself.
        allow_payloads(role, storage.payloads, *WRITE)
        # It gets out of the way of small jobs by their dwell.
        allow_rows(role, storage)
        allow_sending(role, queue)
        acknowledge_payload_objects(self, storage.payloads)
        allow(
            role,
            ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"),
            queue.queue.queue_arn,
        )
        tasks = Stack.of(self).format_arn(
            service="ecs", resource="task", resource_name=f"{self.cluster.cluster_name}/*"
        )
        allow(role, ("ecs:GetTaskProtection", "ecs:UpdateTaskProtection"), tasks)
        cluster = Stack.of(self).resolve(self.cluster.cluster_name)["Ref"]
        acknowledge(
            self.task,
            "IAM5[Resource::arn:<AWS::Partition>:ecs:<AWS::Region>:<AWS::AccountId>:"
            f"task/<{cluster}>/*]",
            "A task's id is made when it starts; only tasks of this cluster match.",
        )


def _capacity(spot_percent: int) -> list[ecs.CapacityProviderStrategy] | None:
    """None: Fargate alone, without a strategy."""
    if spot_percent == 0:
        return None
    spot = ecs.CapacityProviderStrategy(capacity_provider="FARGATE_SPOT", weight=spot_percent)
    if spot_percent == 100:  # noqa: PLR2004  per cent
        return [spot]
    return [
        ecs.CapacityProviderStrategy(
            capacity_provider="FARGATE", base=1, weight=100 - spot_percent
        ),
        spot,
    ]

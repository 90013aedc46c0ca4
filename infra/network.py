"""Where workers run: a small network of the stack's own, in which nothing comes in and only AWS
is reached by default, or a network that was there before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from .acknowledge import acknowledge
from .parts import OwnNetwork
from .settings import DeploySettings

_INTERFACES: Final = {
    "Sqs": ec2.InterfaceVpcEndpointAwsService.SQS,
    "EcrApi": ec2.InterfaceVpcEndpointAwsService.ECR,
    "EcrDocker": ec2.InterfaceVpcEndpointAwsService.ECR_DOCKER,
    "Logs": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_LOGS,
    # Task protection times out without it.
    "Ecs": ec2.InterfaceVpcEndpointAwsService.ECS,
}

_EVENTS: Final = {"Events": ec2.InterfaceVpcEndpointAwsService.EVENTBRIDGE}


@dataclass(frozen=True)
class Place:
    """Subnets of a network. groups: None makes a security group that lets nothing in."""

    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection
    groups: list[ec2.ISecurityGroup] | None = None
    public_ip: bool = False


def place_of_workers(scope: Construct, settings: DeploySettings) -> Place:
    if settings.vpc is not None:
        return own_place(scope, settings.vpc)
    return Network(scope, "Network", settings=settings).place


def own_place(scope: Construct, own: OwnNetwork) -> Place:
    """Without a look-up, which would need the account; so nobody checks that the ids belong
    together before CloudFormation does."""
    vpc = ec2.Vpc.from_vpc_attributes(
        scope,
        "OwnVpc",
        vpc_id=own.vpc_id,
        # Nothing of the template depends on their names; the CDK wants one for each subnet.
        availability_zones=[f"zone-{n}" for n, _ in enumerate(own.subnet_ids)],
        private_subnet_ids=list(own.subnet_ids),
        # And only who adds routes needs these.
        private_subnet_route_table_ids=[f"rtb-{n}" for n, _ in enumerate(own.subnet_ids)],
    )
    return Place(
        vpc,
        ec2.SubnetSelection(subnets=vpc.private_subnets),
        [
            ec2.SecurityGroup.from_security_group_id(scope, f"OwnGroup{n}", id_, mutable=False)
            for n, id_ in enumerate(own.security_group_ids)
        ],
        own.public_ip,
    )


class Network(Construct):
    def __init__(self, scope: Construct, id_: str, *, settings: DeploySettings) -> None:
        super().__init__(scope, id_)
        lane = settings.bulk_lane
        kind = _KINDS[lane.network]
        self._cidr: Final = lane.cidr
        self.vpc: Final = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(lane.cidr),
            max_azs=lane.zones,
            nat_gateways=1 if lane.network == "nat" else 0,
            subnet_configuration=_subnets(kind, nat=lane.network == "nat"),
            # It would take a custom resource, and nothing uses that group.
            restrict_default_security_group=False,
            # Free, and keep the bulk of the traffic off what costs per gigabyte.
            gateway_endpoints={
                "DynamoDb": ec2.GatewayVpcEndpointOptions(
                    service=ec2.GatewayVpcEndpointAwsService.DYNAMODB
                ),
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
            },
        )
        self.place: Final = Place(
            self.vpc,
            ec2.SubnetSelection(subnet_type=kind),
            public_ip=kind == ec2.SubnetType.PUBLIC,
        )
        acknowledge(
            self.vpc,
            "VPC7",
            "Nothing listens in this network, and its only callers are the workers, which log each "
            "thing they do; flow logs would cost more than they tell.",
        )
        if lane.network == "endpoints":
            events = _EVENTS if settings.effects.event_bus is not None else {}
            self._endpoints({**_INTERFACES, **events})

    def _endpoints(self, services: Mapping[str, ec2.InterfaceVpcEndpointAwsService]) -> None:
        group = ec2.SecurityGroup(
            self,
            "EndpointGroup",
            vpc=self.vpc,
            description="HTTPS from this network to the endpoints of AWS services",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(ec2.Peer.ipv4(self._cidr), ec2.Port.tcp(443), "Workers")
        for id_, service in services.items():
            self.vpc.add_interface_endpoint(
                id_,
                service=service,
                subnets=self.place.subnets,
                security_groups=[group],
                open=False,
            )


_KINDS: Final = {
    "endpoints": ec2.SubnetType.PRIVATE_ISOLATED,
    "nat": ec2.SubnetType.PRIVATE_WITH_EGRESS,
    "public": ec2.SubnetType.PUBLIC,
}


def _subnets(kind: ec2.SubnetType, *, nat: bool) -> list[ec2.SubnetConfiguration]:
    workers = ec2.SubnetConfiguration(name="Workers", subnet_type=kind, cidr_mask=24)
    if not nat:
        return [workers]
    return [
        workers,
        ec2.SubnetConfiguration(name="Nat", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24),
    ]

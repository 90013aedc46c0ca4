"""A small network for the bulk workers: nothing comes in, and only AWS is reached by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from .acknowledge import acknowledge

_CIDR: Final = "10.0.0.0/16"

_INTERFACES: Final = {
    "Sqs": ec2.InterfaceVpcEndpointAwsService.SQS,
    "EcrApi": ec2.InterfaceVpcEndpointAwsService.ECR,
    "EcrDocker": ec2.InterfaceVpcEndpointAwsService.ECR_DOCKER,
    "Logs": ec2.InterfaceVpcEndpointAwsService.CLOUDWATCH_LOGS,
    # Task protection times out without it.
    "Ecs": ec2.InterfaceVpcEndpointAwsService.ECS,
}

_EVENTS: Final = {"Events": ec2.InterfaceVpcEndpointAwsService.EVENTBRIDGE}


class Network(Construct):
    def __init__(
        self, scope: Construct, id_: str, *, kind: Literal["endpoints", "nat"], events: bool
    ) -> None:
        """events: the workers put events on a bus."""
        super().__init__(scope, id_)
        private = (
            ec2.SubnetType.PRIVATE_WITH_EGRESS if kind == "nat" else ec2.SubnetType.PRIVATE_ISOLATED
        )
        self.subnets: Final = ec2.SubnetSelection(subnet_type=private)
        self.vpc: Final = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(_CIDR),
            max_azs=2,
            nat_gateways=1 if kind == "nat" else 0,
            subnet_configuration=_subnets(private, public=kind == "nat"),
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
        acknowledge(
            self.vpc,
            "VPC7",
            "Nothing listens in this network, and its only callers are the workers, which log each "
            "thing they do; flow logs would cost more than they tell.",
        )
        if kind == "endpoints":
            services = {**_INTERFACES, **(_EVENTS if events else {})}
            self._endpoints(services)

    def _endpoints(self, services: Mapping[str, ec2.InterfaceVpcEndpointAwsService]) -> None:
        group = ec2.SecurityGroup(
            self,
            "EndpointGroup",
            vpc=self.vpc,
            description="HTTPS from this network to the endpoints of AWS services",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(ec2.Peer.ipv4(_CIDR), ec2.Port.tcp(443), "Workers")
        for id_, service in services.items():
            self.vpc.add_interface_endpoint(
                id_, service=service, subnets=self.subnets, security_groups=[group], open=False
            )


def _subnets(private: ec2.SubnetType, *, public: bool) -> list[ec2.SubnetConfiguration]:
    workers = ec2.SubnetConfiguration(name="Workers", subnet_type=private, cidr_mask=24)
    if not public:
        return [workers]
    return [
        workers,
        ec2.SubnetConfiguration(name="Nat", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=24),
    ]

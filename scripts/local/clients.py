"""boto3 clients of one local stack. They take nothing from the caller's environment or profile."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config

from .ministack import CREDENTIALS, REGION, endpoint

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_ecs import ECSClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_ssm import SSMClient


SESSION_S: Final = 43_200
"""How long a role's credentials are good: as long as AWS lets any session be."""


class Clients:
    """One client per service, made when it is first asked for. Safe to share between threads."""

    def __init__(
        self, port: int, database_port: int, credentials: Mapping[str, str] = CREDENTIALS
    ) -> None:
        """credentials: as in the environment; without a session token those of a user."""
        self._ports = port, database_port
        self._session = boto3.Session(
            aws_access_key_id=credentials["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=credentials["AWS_SECRET_ACCESS_KEY"],
            aws_session_token=credentials.get("AWS_SESSION_TOKEN"),
            region_name=REGION,
        )
        self._endpoint = endpoint(port)
        self._database = endpoint(database_port)
        self._config = Config(
            max_pool_connections=32,
            read_timeout=120,
            retries={"total_max_attempts": 3, "mode": "standard"},
            s3={"addressing_style": "path"},
        )

    def credentials_of(self, role: str) -> dict[str, str]:
        """What an AWS client finds the role's credentials by, in the environment. role: its ARN."""
        sts: Any = self._session.client("sts", endpoint_url=self._endpoint, config=self._config)
        session = sts.assume_role(RoleArn=role, RoleSessionName="local", DurationSeconds=SESSION_S)[
            "Credentials"
        ]
        return {
            "AWS_ACCESS_KEY_ID": session["AccessKeyId"],
            "AWS_SECRET_ACCESS_KEY": session["SecretAccessKey"],
            "AWS_SESSION_TOKEN": session["SessionToken"],
        }

    def as_role(self, role: str) -> Clients:
        """Clients that may do what the role may. role: its ARN."""
        return Clients(*self._ports, self.credentials_of(role))

    @cached_property
    def cloudformation(self) -> CloudFormationClient:
        return self._session.client(
            "cloudformation", endpoint_url=self._endpoint, config=self._config
        )

    @cached_property
    def dynamodb(self) -> DynamoDBClient:
        return self._session.client("dynamodb", endpoint_url=self._database, config=self._config)

    @cached_property
    def declared(self) -> DynamoDBClient:
        """The tables as CloudFormation made them, without what is in them."""
        return self._session.client("dynamodb", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def ecs(self) -> ECSClient:
        return self._session.client("ecs", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def events(self) -> EventBridgeClient:
        return self._session.client("events", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def iam(self) -> Any:
        return self._session.client("iam", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def lambda_(self) -> LambdaClient:
        return self._session.client("lambda", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def s3(self) -> S3Client:
        return self._session.client("s3", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def sqs(self) -> SQSClient:
        return self._session.client("sqs", endpoint_url=self._endpoint, config=self._config)

    @cached_property
    def ssm(self) -> SSMClient:
        return self._session.client("ssm", endpoint_url=self._endpoint, config=self._config)

"""A secret kept by AWS, read when it is needed and again after a while, so that it can be
rotated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..aws.errors import reading

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_ssm import SSMClient

    from ..jobs.words.ports import Runtime

KEPT: Final = 300_000
"""ms until it is read again."""


@dataclass
class Secret:
    """Called, it is the secret's bytes. Raises Transient."""

    read: Callable[[], str]
    runtime: Runtime
    _value: bytes = field(default=b"", init=False, repr=False)
    _until: int = field(default=0, init=False)

    def __call__(self) -> bytes:
        now = self.runtime.now()
        if now >= self._until:
            with reading():
                self._value = self.read().encode()
            self._until = now + KEPT
        return self._value


def from_secrets_manager(client: SecretsManagerClient, arn: str) -> str:
    return client.get_secret_value(SecretId=arn)["SecretString"]


def from_parameter(client: SSMClient, name: str) -> str:
    return client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"]

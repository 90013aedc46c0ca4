"""A secret kept by AWS, read when it is needed and again after a while, so that it can be
rotated."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ..aws.errors import reading

if TYPE_CHECKING:
    from mypy_boto3_secretsmanager import SecretsManagerClient
    from mypy_boto3_ssm import SSMClient

    from ..jobs.words.ports import Runtime

NOTIFY: Final = "fairlane notify v1:"
"""What a tenant's key is for. Another purpose has to begin otherwise."""
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


def tenant_key(secret: bytes, tenant: str) -> bytes:
    """The key that signs what is sent to the addresses in a tenant's requests: 64 hex digits. It
    tells nothing about the secret or another tenant's key."""
    return hmac.new(secret, f"{NOTIFY}{tenant}".encode(), hashlib.sha256).hexdigest().encode()


def from_secrets_manager(client: SecretsManagerClient, arn: str) -> str:
    return client.get_secret_value(SecretId=arn)["SecretString"]


def from_parameter(client: SSMClient, name: str) -> str:
    return client.get_parameter(Name=name, WithDecryption=True)["Parameter"]["Value"]

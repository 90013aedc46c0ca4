"""The configuration of AWS clients: time-outs and retries."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from botocore.config import Config

if TYPE_CHECKING:
    from botocore.client import BaseClient

LONGEST_POLL: Final = 20
"""Seconds SQS may take to answer a receive."""
CONNECT_TIMEOUT: Final = 2.0
READ_TIMEOUT: Final = 6.0
ATTEMPTS: Final = 3


def config(
    *,
    long_poll: bool = False,
    connections: int = 10,
    attempts: int = ATTEMPTS,
    signature: str | None = None,
) -> Config:
    """The configuration of a client.

    long_poll: for the SQS client of a worker, whose answers take up to 20 s. connections: threads
    that use the client at once. attempts: tries of one request, with the SDK's own jitter between
    them; the rules retry on top of that. signature: its version, where the SDK's choice is not
    good enough.
    """
    # Every value is checked where it is made (``storage.validation``, ``words.stored_values``); the
    # SDK's own walk over a hundred writes costs as much as sending them.
    return Config(
        connect_timeout=CONNECT_TIMEOUT,
        read_timeout=READ_TIMEOUT + (LONGEST_POLL if long_poll else 0),
        retries={"mode": "standard", "total_max_attempts": attempts},
        max_pool_connections=connections,
        tcp_keepalive=True,
        parameter_validation=False,
        user_agent_extra="fairlane",
        signature_version=signature,
    )


def s3_config() -> Config:
    """The configuration of S3 clients, whose addresses clients and operators use.

    Without virtual addressing, S3 addresses are signed for the global endpoint, which newer regions
    and new buckets refuse (Amazon S3 User Guide, "Virtual hosting of buckets"). A local AWS has an
    endpoint of its own and no host name for each bucket.
    """
    own = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    made = config(signature="s3v4")
    if own:
        return made
    regional = Config(s3={"addressing_style": "virtual", "us_east_1_regional_endpoint": "regional"})
    return made.merge(regional)


def retries_by_itself(client: BaseClient) -> bool:
    """Whether the SDK may send a request more than once, so that a failure to connect does not
    prove that nothing was sent before."""
    retries = getattr(client.meta.config, "retries", None) or {}
    return bool(retries.get("total_max_attempts") != 1)

"""Relations between the settings of a deployment: broken, synthesis stops and names both."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from handlers.jobs.words.limits import MAX_TABLES, Limits
from handlers.jobs.words.timing import require
from handlers.settings import AuthSettings

from .parts import (
    ApiSettings,
    BulkLaneSettings,
    DeployEffects,
    OwnNetwork,
    RecordsSettings,
    SmallLaneSettings,
)

MAPPING_FLOOR: Final = 2
"""The least MaximumConcurrency of an SQS event source mapping (AWS)."""
RESERVED_FLOOR: Final = 5
"""Invocations an event source mapping starts with, whatever its maximum (AWS)."""
LONGEST_SESSION: Final = 12 * 3600
"""Seconds that the credentials of a function can be valid (AWS)."""
MIB: Final = 1024**2
PROGRAM_MIB: Final = 128
"""What a worker or the API takes without any table: 70 to 100 were measured."""
TABLE_IN_MEMORY: Final = 25
"""Bytes that a byte of a lookup table takes while it is read: 17 to 20 were measured with many
small rows, and 24.7 with rows of many short numbers, which are the worst."""
TABLE_IN_REQUEST: Final = 8
"""The same for a creation, which keeps the keys and not the rows: 7 were measured."""
PRIVATE_IMAGE: Final = re.compile(r"^\d{12}\.dkr\.ecr\.")
EXAMPLES: Final = re.compile(r"(^|\.)example\.(com|net|org)$")
"""Hosts that documentation uses (RFC 2606), cdk.json's own among them."""


def check_concurrency(lane: SmallLaneSettings) -> None:
    require(
        lane.maximum_concurrency >= MAPPING_FLOOR,
        "small_lane.maximum_concurrency",
        lane.maximum_concurrency,
        "at least",
        "the floor",
        MAPPING_FLOOR,
        "Lambda accepts no lower maximum concurrency",
    )
    require(
        lane.provisioned_concurrency <= lane.maximum_concurrency,
        "small_lane.provisioned_concurrency",
        lane.provisioned_concurrency,
        "at most",
        "small_lane.maximum_concurrency",
        lane.maximum_concurrency,
        "more warm functions than jobs at once are paid for nothing",
    )
    if lane.reserved_concurrency is None:
        return
    require(
        lane.reserved_concurrency >= RESERVED_FLOOR,
        "small_lane.reserved_concurrency",
        lane.reserved_concurrency,
        "at least",
        "the floor",
        RESERVED_FLOOR,
        "the event source mapping starts with that many invocations",
    )
    require(
        lane.maximum_concurrency <= lane.reserved_concurrency,
        "small_lane.maximum_concurrency",
        lane.maximum_concurrency,
        "at most",
        "small_lane.reserved_concurrency",
        lane.reserved_concurrency,
        "throttled messages become dead letters although no function ever ran their jobs",
    )


def check_way_out(effects: DeployEffects, lane: BulkLaneSettings) -> None:
    """What is called has to be reached, from every worker."""
    if lane.network != "own":
        host = urlsplit(effects.search_url or "").hostname or ""
        if host.startswith("vpc-"):
            raise ValueError(
                f"effects.search_url = {effects.search_url} is inside a VPC and cannot be reached "
                f"with bulk_lane.network = {lane.network}: set it to own, and name that network "
                "in vpc, with vpc.functions = true"
            )
    if lane.network != "endpoints":
        return
    for name, url in (("search_url", effects.search_url), ("webhook_url", effects.webhook_url)):
        if url is not None and not effects.webhook_loopback and url.startswith("https://"):
            raise ValueError(
                f"effects.{name} = {url} cannot be reached with bulk_lane.network = "
                f"{lane.network}: that network leads to AWS services only; set it to nat"
            )


def check_tasks(lane: BulkLaneSettings) -> None:
    require(
        lane.min_tasks <= lane.max_tasks,
        "bulk_lane.min_tasks",
        lane.min_tasks,
        "at most",
        "bulk_lane.max_tasks",
        lane.max_tasks,
        "the bulk lane scales from min_tasks to max_tasks",
    )
    require(
        lane.cpu * 2 <= lane.memory,
        "bulk_lane.cpu x 2",
        lane.cpu * 2,
        "at most",
        "bulk_lane.memory",
        lane.memory,
        "Fargate has no task size with so little memory",
    )
    require(
        lane.memory <= lane.cpu * 8,
        "bulk_lane.memory",
        lane.memory,
        "at most",
        "bulk_lane.cpu x 8",
        lane.cpu * 8,
        "Fargate has no task size with so much memory",
    )


def check_network(lane: BulkLaneSettings, vpc: OwnNetwork | None, effects: DeployEffects) -> None:
    if (lane.network == "own") != (vpc is not None):
        raise ValueError(
            f"bulk_lane.network = {lane.network} and vpc {'is' if vpc else 'is not'} set: "
            "own needs vpc, and vpc needs own"
        )
    host = urlsplit(effects.search_url or "").hostname or ""
    if vpc is not None and not vpc.functions and host.startswith("vpc-"):
        raise ValueError(
            f"effects.search_url = {effects.search_url} is inside a VPC, and vpc.functions is "
            "false: the functions search and write to it too"
        )


def check_image(lane: BulkLaneSettings) -> None:
    if lane.image_uri is None:
        return
    if lane.repository is not None:
        raise ValueError("set bulk_lane.image_uri or bulk_lane.repository, not both")
    if PRIVATE_IMAGE.match(lane.image_uri):
        raise ValueError(
            f"bulk_lane.image_uri = {lane.image_uri} is in a private repository, which nobody "
            "may pull from without a grant: name it in bulk_lane.repository"
        )
    if lane.network == "endpoints":
        raise ValueError(
            f"bulk_lane.image_uri = {lane.image_uri} cannot be pulled with bulk_lane.network = "
            f"{lane.network}: that network does not lead to a public registry. Set the network "
            "to nat or public, or put the image into ECR and name it in bulk_lane.repository"
        )


def check_links(limits: Limits) -> None:
    require(
        limits.upload_seconds <= LONGEST_SESSION,
        "limits.upload_seconds",
        limits.upload_seconds,
        "at most",
        "the session of a function's role in seconds",
        LONGEST_SESSION,
        "an address is signed with that session and ends with it",
    )


def check_lookup_tables(
    limits: Limits, api: ApiSettings, small: SmallLaneSettings, bulk: BulkLaneSettings
) -> None:
    """The largest tables that jobs may have fit into what works with them. The API reads one table
    at a time."""
    of_a_job = f"a job may have {MAX_TABLES} tables, each {TABLE_IN_MEMORY} times as large there"
    for name, memory, times, why in (
        ("api.memory", api.memory, TABLE_IN_REQUEST, "the API reads a table within a request"),
        ("small_lane.memory", small.memory, MAX_TABLES * TABLE_IN_MEMORY, of_a_job),
        (
            "bulk_lane.memory",
            bulk.memory,
            bulk.slots * MAX_TABLES * TABLE_IN_MEMORY,
            f"bulk_lane.slots = {bulk.slots} jobs run at once, and {of_a_job}",
        ),
    ):
        most = max(0, memory - PROGRAM_MIB) * MIB // times
        require(
            limits.max_table_bytes <= most,
            "limits.max_table_bytes",
            limits.max_table_bytes,
            "at most",
            f"what {name} = {memory} has room for",
            most,
            f"{why}; a larger one would end the process",
        )


def check_no_development(auth: AuthSettings | None, effects: DeployEffects) -> None:
    """What is for one machine only is refused, unless the deployment says it is local."""
    found = {
        "effects.webhook_loopback": effects.webhook_loopback or None,
        "effects.webhook_secret": effects.webhook_secret,
        "effects.search_url": _plain(effects.search_url),
        "effects.webhook_url": _plain(effects.webhook_url),
    }
    if auth is not None:
        found["auth.auth_jwks_url"] = _plain(auth.auth_jwks_url) or _example(auth.auth_jwks_url)
        found["auth.auth_issuer"] = _plain(auth.auth_issuer) or _example(auth.auth_issuer)
    if named := [name for name, value in found.items() if value]:
        raise ValueError(
            f"{', '.join(named)}: addresses of this machine, secrets in clear text and issuers of "
            "an example are for development; on an account anybody could use them. They are "
            "accepted with local = true only"
        )


def _plain(url: str | None) -> str | None:
    return url if (url or "").startswith("http://") else None


def _example(url: str) -> str | None:
    host = urlsplit(url).hostname or ""
    return url if EXAMPLES.search(host) else None


def check_tables(control: str | None, records: RecordsSettings) -> None:
    if control is not None and control == records.table_name:
        raise ValueError(
            f"control_table and records.table_name are both {control}: jobs and records have "
            "different keys, and need a table each"
        )


def check_state(*, state_stack: bool, local: bool) -> None:
    if state_stack and local:
        raise ValueError(
            "state_stack = true and local = true: a local stack is one stack, and its data goes "
            "with it"
        )

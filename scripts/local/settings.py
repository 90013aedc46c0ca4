"""What a local deployment chooses differently: the same context that cdk.json holds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, TypeAlias

from infra.settings import CONTEXT_KEY, DeploySettings

from . import identity
from .errors import LocalError
from .ministack import endpoint

Chosen: TypeAlias = Mapping[str, Any]
"""What differs from the defaults of ``infra.settings.DeploySettings``, at any depth."""

LOCAL: Final[Chosen] = {
    "local": True,
    "removal": "destroy",
    "state_stack": False,  # whatever an app of a team chooses
    # Short, so that a dead worker's job goes on within a minute; the relations are checked like
    # anybody's.
    "timing": {
        "small": {"heartbeat": 2, "lease_ttl": 8, "visibility": 60},
        "bulk": {"heartbeat": 2, "lease_ttl": 8, "visibility": 20},
        "takeover_grace": 70,
        "function_timeout": 10,
        "stop_timeout": 45,
        "longest_chunk": 30,
        "small_reserve": 3,
        "dispatch_grace": 5,
        "lost_after": 120,
        "retry_base": 0.5,
        "retry_cap": 10,
    },
    # Each is a process of its own here, on a few cores.
    "small_lane": {
        "maximum_concurrency": 4,
        "reserved_concurrency": 5,
        "provisioned_concurrency": 0,
        "dwell_slo_ms": 1000,
    },
    # Named, so that no Docker image is built; the worker runs as a process.
    "api": {"reserved_concurrency": None, "authorizer_concurrency": None},
    "recovery_concurrency": None,
    "vpc": None,
    "bulk_lane": {
        "image_uri": "fairlane-worker:local",
        "min_tasks": 1,
        "max_tasks": 2,
        "spot_percent": 0,  # ministack knows no capacity providers
        "network": "public",  # and no NAT gateways; nothing of the account's network is here either
        "poll_seconds": 1,
    },
}


OPERATIONS: Final = "operations"


def chosen_in(cdk_json: Mapping[str, Any]) -> Chosen:
    """What a local stack takes of the deployment's settings in ``cdk.json``: the team's operations.
    All others are about an account. Raises LocalError for one that there is not."""
    context = cdk_json.get("context", {}).get(CONTEXT_KEY) or {}
    try:
        chosen = json.loads(context) if isinstance(context, str) else context
    except ValueError as error:
        raise LocalError(f"context.{CONTEXT_KEY} of cdk.json cannot be read: {error}") from error
    if not isinstance(chosen, dict):
        raise LocalError(f"context.{CONTEXT_KEY} of cdk.json has to be an object")
    for name in chosen:
        if name not in DeploySettings.model_fields:
            near = get_close_matches(name, DeploySettings.model_fields, 1)
            hint = f"; is it {near[0]}?" if near else ""
            raise LocalError(f"context.{CONTEXT_KEY} of cdk.json has no setting {name}{hint}")
    return {OPERATIONS: chosen[OPERATIONS]} if chosen.get(OPERATIONS) else {}


AWS_STAND_IN: Final = "http://localhost/the-local-aws"
SEARCH_STAND_IN: Final = "http://localhost/the-search-engine"
"""Where addresses go that no two starts have in common (``Synthesis.assembly``)."""


def local_settings(port: int, chosen: Chosen | None = None) -> Chosen:
    """The context of a stack whose local AWS listens on ``port``; ``chosen`` goes over it."""
    return _local_settings(endpoint(port), chosen or {})


def settings_anywhere(chosen: Chosen | None = None) -> Chosen:
    """The context of a stack wherever its local AWS listens: with its stand-in."""
    return _local_settings(AWS_STAND_IN, chosen or {})


def _local_settings(aws: str, chosen: Chosen) -> Chosen:
    auth = {
        "auth_jwks_url": identity.jwks_url(aws),
        "auth_issuer": identity.ISSUER,
        "auth_audience": identity.AUDIENCE,
        "auth_tenant_claim": identity.TENANT_CLAIM,
    }
    return over({**LOCAL, "auth": auth}, chosen)


def over(below: Chosen, above: Chosen) -> Chosen:
    """The settings of ``below`` with those of ``above`` in their place, at any depth."""
    merged = {**below, **above}
    for name, value in above.items():
        under = below.get(name)
        if isinstance(value, Mapping) and isinstance(under, Mapping):
            merged[name] = over(under, value)
    return merged

"""Profiles: which defaults a deployment starts from. What its context names goes over them.

``prod`` is the defaults of the settings themselves.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

Profile: TypeAlias = Literal["dev", "prod"]
Chosen: TypeAlias = Mapping[str, Any]

_DEV: Final[Chosen] = {
    # A new account has ten concurrent executions in all, and none to reserve.
    "small_lane": {
        "maximum_concurrency": 5,
        "reserved_concurrency": None,
        "memory": 512,
        "provisioned_concurrency": 0,
    },
    "bulk_lane": {
        "network": "public",  # no endpoint and no gateway to pay for
        "cpu": 256,
        "memory": 512,
        "min_tasks": 0,
        "max_tasks": 2,
        "spot_percent": 100,
    },
    "api": {
        "cloudwatch_role": True,  # an empty account has none
        "reserved_concurrency": None,
        "authorizer_concurrency": None,
    },
    "recovery_concurrency": None,
    "limits": {"max_table_bytes": 3 * 1024**2 // 2},  # what that little memory has room for
    "waf": {"mode": "off"},
    "removal": "purge",
    "log_retention_days": 7,
}
_NEITHER: Final = {"demo_tenant": "demo"}


def defaults_of(chosen: Chosen) -> Chosen:
    """What the context's profile changes of the settings' defaults."""
    if chosen.get("profile", "prod") != "dev":
        return {}
    callers = {} if {"auth", "principals"} & set(chosen) else _NEITHER
    # Docker builds for its own machine without an emulator.
    machine = "arm64" if platform.machine().lower() in {"arm64", "aarch64"} else "x86_64"
    return {**_DEV, **callers, "architecture": machine}


def merge(defaults: Chosen, chosen: Chosen) -> dict[str, Any]:
    """The settings of ``defaults`` with those of ``chosen`` in their place, at any depth."""
    merged = {**defaults, **chosen}
    for name, default in defaults.items():
        value = chosen.get(name)
        if isinstance(default, Mapping) and isinstance(value, Mapping):
            merged[name] = merge(default, value)
    return merged

"""What a deployment costs in a month: every priced part, from its settings and its load.

Prices are those of us-east-1 in dollars, as they were known at ``PRICED``; AWS's price pages and a
bill decide. Free tiers, taxes, support and traffic to the internet are not
in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from infra.settings import DeploySettings

PRICED: Final = "2025-11"
HOURS: Final = 730
DAYS: Final = 30.4
SECONDS: Final = HOURS * 3600
MILLION: Final = 1e6

FUNCTION_GB_SECOND: Final = {"arm64": 0.0000133334, "x86_64": 0.0000166667}
WARM_GB_SECOND: Final = {"arm64": 0.0000033334, "x86_64": 0.0000041667}
CALLS: Final = 0.20
VCPU_HOUR: Final = {"arm64": 0.03238, "x86_64": 0.04048}
GB_HOUR: Final = {"arm64": 0.00356, "x86_64": 0.004445}
SPOT_SHARE: Final = 0.3
"""Of the price, about; it changes from day to day."""
ENDPOINT_HOUR: Final = 0.01
NAT_HOUR: Final = 0.045
ADDRESS_HOUR: Final = 0.005
WRITE_UNITS: Final = 0.625
READ_UNITS: Final = 0.125
SQS_REQUESTS: Final = 0.50
"""With the surcharge of fair queues."""
REST_CALLS: Final = 3.50
ACL: Final = 5.0
RULE: Final = 1.0
ACL_REQUESTS: Final = 0.60
METRIC: Final = 0.30
ALARM: Final = 0.10
DASHBOARD: Final = 3.0
LOG_GB: Final = 0.50
SECRET: Final = 0.40

SMALL_JOB_SECONDS: Final = 0.5
SMALL_JOB_CALLS: Final = 3
"""Of the API: create, and two looks."""
JOB_UNITS: Final = 33
"""Write units from a job's creation to its end, without its records (``fairlane bench``)."""
ITEM_UNITS: Final = 2.7
"""A record of up to 1 KB in a transaction, and its share of the chunk (``fairlane bench``)."""
JOB_LOG_KB: Final = 12
BULK_ITEMS_SECOND: Final = 500
"""Records that a slot changes each second, about."""
POLLERS: Final = 5
RULES: Final = 7
OWN_METRICS: Final = 60
ALARM_METRICS: Final = 50
INSIGHTS_METRICS: Final = 20
RECOVERY_SECONDS: Final = 1.0
RECOVERY_GB: Final = 0.5


@dataclass(frozen=True)
class Load:
    """A month's work, as it is on each day."""

    small_jobs: float
    """A day."""
    bulk_jobs: float
    """A day."""
    items: float
    """Records of one bulk job; a small one has ten."""


@dataclass(frozen=True)
class Row:
    part: str
    formula: str
    idle: float
    """Dollars a month without one job."""
    load: float = 0.0
    """Dollars a month that the jobs add."""


def estimate(settings: DeploySettings, load: Load) -> list[Row]:
    """Dearest first."""
    rows = [
        *_network(settings),
        *_workers(settings, load),
        *_functions(settings, load),
        *_front_door(settings, load),
        *_storage(load),
        *_watching(load),
    ]
    if settings.effects.webhook_secret_arn is not None:
        rows.append(Row("secret", f"1 x {SECRET}", SECRET))
    return sorted(rows, key=lambda row: -(row.idle + row.load))


def _network(settings: DeploySettings) -> Iterator[Row]:
    lane = settings.bulk_lane
    if lane.network == "endpoints":
        count = 5 + (settings.effects.event_bus is not None)
        yield Row(
            "private endpoints",
            f"{count} endpoints x {lane.zones} zones x {HOURS} h x {ENDPOINT_HOUR}",
            count * lane.zones * HOURS * ENDPOINT_HOUR,
        )
    if lane.network == "nat":
        yield Row(
            "NAT gateway",
            f"{HOURS} h x ({NAT_HOUR} + address {ADDRESS_HOUR}), traffic at {NAT_HOUR} a GB",
            HOURS * (NAT_HOUR + ADDRESS_HOUR),
        )


def _workers(settings: DeploySettings, load: Load) -> Iterator[Row]:
    lane, kind = settings.bulk_lane, settings.architecture
    spot = lane.spot_percent / 100
    share = 1 - spot + spot * SPOT_SHARE
    address = ADDRESS_HOUR if lane.network == "public" else 0.0
    vcpu, memory = lane.cpu / 1024, lane.memory / 1024
    hour = share * (vcpu * VCPU_HOUR[kind] + memory * GB_HOUR[kind]) + address
    items = load.bulk_jobs * DAYS * load.items
    busy = items / BULK_ITEMS_SECOND / lane.slots / 3600
    # What the idle tasks do themselves adds nothing.
    added = max(0.0, busy - lane.min_tasks * HOURS)
    yield Row(
        "bulk workers",
        f"{lane.min_tasks} x {HOURS} h idle + {added:,.0f} h more, x {hour:.4f}",
        lane.min_tasks * HOURS * hour,
        added * hour,
    )


def _functions(settings: DeploySettings, load: Load) -> Iterator[Row]:
    lane, kind = settings.small_lane, settings.architecture
    gigabytes = lane.memory / 1024
    if lane.provisioned_concurrency:
        yield Row(
            "warm functions",
            f"{lane.provisioned_concurrency} x {gigabytes:g} GB x {SECONDS:,} s x "
            f"{WARM_GB_SECOND[kind]}",
            lane.provisioned_concurrency * gigabytes * SECONDS * WARM_GB_SECOND[kind],
        )
    jobs = load.small_jobs * DAYS
    yield Row(
        "small jobs",
        f"{jobs:,.0f} x {SMALL_JOB_SECONDS} s x {gigabytes:g} GB x {FUNCTION_GB_SECOND[kind]}",
        0.0,
        jobs * (SMALL_JOB_SECONDS * gigabytes * FUNCTION_GB_SECOND[kind] + CALLS / MILLION),
    )
    runs = HOURS * 60
    yield Row(
        "recovery",
        f"{runs:,} runs x {RECOVERY_SECONDS} s x {RECOVERY_GB} GB x {FUNCTION_GB_SECOND[kind]}",
        runs * (RECOVERY_SECONDS * RECOVERY_GB * FUNCTION_GB_SECOND[kind] + CALLS / MILLION),
    )


def _front_door(settings: DeploySettings, load: Load) -> Iterator[Row]:
    calls = (load.small_jobs + load.bulk_jobs) * DAYS * SMALL_JOB_CALLS
    memory = settings.api.memory / 1024
    run = 0.1 * memory * FUNCTION_GB_SECOND[settings.architecture] + CALLS / MILLION
    yield Row(
        "API",
        f"{calls:,.0f} calls x ({REST_CALLS} a million + 0.1 s of its function)",
        0.0,
        calls * (REST_CALLS / MILLION + run),
    )
    if settings.waf.mode != "off":
        yield Row(
            "web ACL",
            f"{ACL} + {RULES} rules x {RULE} + {ACL_REQUESTS} a million requests",
            ACL + RULES * RULE,
            calls * ACL_REQUESTS / MILLION,
        )
    polls = SECONDS / 20 * (POLLERS + settings.bulk_lane.min_tasks * settings.bulk_lane.slots)
    messages = (load.small_jobs + load.bulk_jobs) * DAYS * 4
    yield Row(
        "queues",
        f"({polls:,.0f} idle polls + 4 requests a job) x {SQS_REQUESTS} a million",
        polls * SQS_REQUESTS / MILLION,
        messages * SQS_REQUESTS / MILLION,
    )


def _storage(load: Load) -> Iterator[Row]:
    jobs = (load.small_jobs + load.bulk_jobs) * DAYS
    items = (load.small_jobs * 10 + load.bulk_jobs * load.items) * DAYS
    units = jobs * JOB_UNITS + items * ITEM_UNITS
    yield Row(
        "tables",
        f"({jobs:,.0f} jobs x {JOB_UNITS} + {items:,.0f} records x {ITEM_UNITS}) write units x "
        f"{WRITE_UNITS} a million, reads a tenth of it",
        # Recovery asks 24 index partitions a minute.
        HOURS * 60 * 24 * 0.5 * READ_UNITS / MILLION,
        units * (WRITE_UNITS * 1.1) / MILLION,
    )


def _watching(load: Load) -> Iterator[Row]:
    jobs = (load.small_jobs + load.bulk_jobs) * DAYS
    yield Row(
        "metrics, alarms and dashboard",
        f"{OWN_METRICS} + {INSIGHTS_METRICS} metrics x {METRIC} + {ALARM_METRICS} alarm metrics x "
        f"{ALARM} + {DASHBOARD}",
        # A metric is paid for the hours in which it is written.
        INSIGHTS_METRICS * METRIC + ALARM_METRICS * ALARM + DASHBOARD,
        OWN_METRICS * METRIC if jobs else 0.0,
    )
    yield Row(
        "logs",
        f"{jobs:,.0f} jobs x {JOB_LOG_KB} KB x {LOG_GB} a GB",
        HOURS * 60 / MILLION * LOG_GB,
        jobs * JOB_LOG_KB / MILLION * LOG_GB,
    )

"""What only AWS can show: fair queues, the web ACL before the API, task protection, scaling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

import boto3
import urllib3
from botocore.exceptions import BotoCoreError, ClientError

from scripts.ops.doctor.reading import Of
from scripts.ops.fair_queue import NOISY_GROUPS, most
from scripts.ops.firewall import Identify, Probe, Who, probes, send

from .rows import Row, Verdict, judged, told, unchecked

FAIR, FIREWALL = "fair-queue metrics", "the web ACL"
PROTECTION, SCALING = "task protection", "scaling of the bulk lane"
ALL: Final = (FAIR, FIREWALL, PROTECTION, SCALING)
WEB_ACL: Final = "AWS::WAFv2::WebACL"
POLICIES: Final = 2
"""One grows the lane, the other shrinks it."""
ASKED: Final = 100
"""Tasks of one call."""
PROBED: Final = ("POST /v1/jobs, 70000 bytes", "POST /v1/uploads, 8300 bytes")
"""Of the probes of `fairlane verify waf`: one that a firewall passes here, and one it refuses."""


@dataclass
class Readings:
    outputs: Mapping[str, str]
    resources: Of
    rows: list[Row] = field(default_factory=list)
    clients: Any = boto3
    """Makes a client by its service's name."""
    _protected: bool = False
    _tasks: int = 0
    _why: str = ""
    """Why the tasks cannot be looked at."""

    # --- while a bulk job runs ----------------------------------------------------------------

    def look_at_tasks(self) -> None:
        """The job goes on whatever becomes of this."""
        if self._protected or self._why:
            return
        try:
            self._look_at_tasks()
        except (ClientError, BotoCoreError) as error:
            self._why = str(error)

    def _look_at_tasks(self) -> None:
        ecs, cluster = self.clients.client("ecs"), self.outputs["BulkCluster"]
        tasks = ecs.list_tasks(cluster=cluster, serviceName=self.outputs["BulkService"])["taskArns"]
        self._tasks = max(self._tasks, len(tasks))
        if tasks:
            told_of = ecs.get_task_protection(cluster=cluster, tasks=tasks[:ASKED])
            self._protected = any(each["protectionEnabled"] for each in told_of["protectedTasks"])

    def protection(self) -> None:
        saw = f"{self._tasks} tasks at most while a bulk job ran"
        if self._protected:
            self.rows.append(judged(PROTECTION, f"{saw}, one of them protected", ok=True))
        else:
            seen = f"{saw}, and none was seen protected: raise --items, so that it runs longer"
            self.rows.append(unchecked(PROTECTION, self._why or seen))

    # --- afterwards ---------------------------------------------------------------------------

    def fair_queue(self, start: datetime) -> None:
        with told(FAIR, self.rows):
            queue = self.outputs["SmallQueueUrl"].rpartition("/")[2]
            seen = most(self.clients.client("cloudwatch"), queue, start, datetime.now(UTC))
            if NOISY_GROUPS not in seen:
                why = (
                    "CloudWatch has none of this queue yet. A queue that slept reports up to 15 "
                    "minutes late: run the check again then"
                )
                self.rows.append(unchecked(FAIR, why))
                return
            saw = ", ".join(f"{name} {value:g}" for name, value in seen.items())
            self.rows.append(judged(FAIR, saw, ok=True))

    def firewall(self, url: str, identify: Identify) -> None:
        with told(FIREWALL, self.rows):
            if not self.resources.get(WEB_ACL):
                self.rows.append(unchecked(FIREWALL, "the stack has none (waf.mode is off)"))
                return
            client = self.clients.client("wafv2")
            found = client.get_web_acl_for_resource(ResourceArn=self._stage(client.meta))
            acl = found.get("WebACL")
            if acl is None:
                self.rows.append(judged(FIREWALL, "nothing is in front of the API", ok=False))
                return
            counts = any("Count" in rule.get("Action", {}) for rule in acl["Rules"])
            saw = f"{acl['Name']} is in front of the API"
            self.rows.append(
                judged(FIREWALL, f"{saw}, and only counts" if counts else saw, ok=True)
            )
            with urllib3.PoolManager() as pool:
                for probe in probes():
                    # One that only counts refuses nothing.
                    if probe.what in PROBED and (probe.who is Who.API or not counts):
                        self.rows.append(_answered(pool, url, probe, identify))

    def scaling(self) -> None:
        with told(SCALING, self.rows):
            scaling = self.clients.client("application-autoscaling")
            of = f"service/{self.outputs['BulkCluster']}/{self.outputs['BulkService']}"
            asked: dict[str, Any] = {"ServiceNamespace": "ecs"}
            targets = scaling.describe_scalable_targets(**asked, ResourceIds=[of])
            policies = scaling.describe_scaling_policies(**asked, ResourceId=of)["ScalingPolicies"]
            armed = sum(bool(each.get("Alarms")) for each in policies)
            if not targets["ScalableTargets"]:
                self.rows.append(judged(SCALING, "the service is no scalable target", ok=False))
                return
            [target] = targets["ScalableTargets"]
            saw = (
                f"{target['MinCapacity']} to {target['MaxCapacity']} tasks, {armed} policies with "
                "an alarm"
            )
            self.rows.append(judged(SCALING, saw, ok=armed == POLICIES))

    def _stage(self, meta: Any) -> str:
        """Of Fairlane's own API: a construct's stack may have others."""
        address = urlsplit(self.outputs["ApiUrl"])
        api, stage = address.netloc.partition(".")[0], address.path.strip("/")
        return f"arn:{meta.partition}:apigateway:{meta.region_name}::/restapis/{api}/stages/{stage}"


def only_on_aws() -> list[Row]:
    """On a local stack."""
    return [Row(what, Verdict.ON_AWS, "the local AWS has nothing like it") for what in ALL]


def _answered(pool: urllib3.PoolManager, url: str, probe: Probe, identify: Identify) -> Row:
    seen = send(pool, url, probe, identify)
    ok = (seen.status, seen.who) == (probe.status, probe.who)
    return judged(f"{FIREWALL}: {probe.what}", str(seen), ok=ok)

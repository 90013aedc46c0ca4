"""The noisy tenant against a deployed stack: its jobs through the API, the broker's fair-queue
metrics from CloudWatch. The jobs name records that do not exist, so that none is changed.

A local queue has no fair queues to show; what is judged here is the same ratio as there, and what
CloudWatch counted is shown beside it.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from fairlane_client import ApiProblem, Client, JobView, NewJob
from scripts.load.measures import Dwell
from scripts.local.errors import LocalError
from scripts.ops.fair_queue import NOISY_GROUPS, CloudWatch, most

from .framework import Expectation, PartReport, Report
from .noisy_tenant import SCENARIO, WITHIN

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

FLOOD: Final = 500
"""Jobs of the noisy tenant."""
IDS: Final = 100
"""Records of each."""
AT_ONCE: Final = 16
"""Requests of the flood."""
OTHERS: Final = 40
"""Jobs of the others together, before the flood and beside it."""
PACE_S: Final = 1.0
ENDED_WITHIN_S: Final = 900
LOOK_S: Final = 5.0
MIN_TENANTS: Final = 2
METRICS_AFTER_S: Final = 180
"""CloudWatch has a queue's minute by then."""


@dataclass(frozen=True)
class Target:
    """A deployed stack."""

    api_url: str
    queue: str
    """Name of the small lane's."""


def target(cloudformation: CloudFormationClient, stack: str) -> Target:
    """Raises LocalError."""
    [described] = cloudformation.describe_stacks(StackName=stack)["Stacks"]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", [])}
    try:
        queue = outputs["SmallQueueUrl"].rpartition("/")[2]
        return Target(outputs["ApiUrl"].rstrip("/"), queue)
    except KeyError as error:
        raise LocalError(f"the stack {stack!r} has no output {error}: is it Fairlane?") from error


def report(
    place: Target,
    tokens: Sequence[str],
    cloudwatch: CloudWatch,
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> Report:
    """Put the load on the stack and judge it. tokens: the noisy tenant's first."""
    noisy, *others = [Client(place.api_url, token, sleep=sleep) for token in tokens]
    load = _Load(noisy, others, sleep)
    start = time.time()
    seen = tuple(_judged(load, place, cloudwatch, sleep))
    part = PartReport(part="run", expectations=seen, seconds=round(time.time() - start, 1))
    return Report(scenario=SCENARIO.name, shows=SCENARIO.shows, parts=(part,))


def _judged(
    load: _Load, place: Target, cloudwatch: CloudWatch, sleep: Callable[[float], None]
) -> Iterator[Expectation]:
    unloaded = load.finished(load.quiet())
    start = datetime.now(UTC)
    flood = load.flood()
    try:
        loaded = load.finished(load.quiet())
    finally:
        end = datetime.now(UTC)
        load.cancel(flood)
    before, beside = _dwell(unloaded), _dwell(loaded)
    ratio = beside.p95 / max(before.p95, 1)
    yield Expectation.equal("jobs of the flood that were taken", expected=FLOOD, saw=len(flood))
    yield Expectation.of(
        "the others' p95 dwell beside the flood",
        expected=f"at most {WITHIN:g} x its unloaded value",
        saw=f"{ratio:.1f} x: {beside.p95} ms (p50 {beside.p50}), unloaded {before.p95} ms",
        ok=ratio <= WITHIN,
    )
    sleep(METRICS_AFTER_S)
    seen = most(cloudwatch, place.queue, start, end)
    yield Expectation.of(
        "the small queue's fair-queue metrics, at their most (shown, not judged)",
        expected="a value of each that the queue had in that time",
        saw=", ".join(f"{name} {value:g}" for name, value in seen.items()) or "none",
        ok=NOISY_GROUPS in seen,
    )


def _dwell(jobs: Sequence[JobView]) -> Dwell:
    """From their creation on: should one of them have been held, that counts too."""
    return Dwell.of(
        round((job.started_at - job.created_at).total_seconds() * 1000)
        for job in jobs
        if job.started_at is not None
    )


@dataclass
class _Load:
    noisy: Client
    others: Sequence[Client]
    sleep: Callable[[float], None]
    run: str = field(default_factory=lambda: secrets.token_hex(4))
    """In every subject, so that two runs do not meet."""
    made: int = 0

    def flood(self) -> list[str]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            jobs = pool.map(lambda n: self.noisy.submit(self._job(f"flood-{n}")), range(FLOOD))
            return [job.id for job in jobs]

    def quiet(self) -> list[tuple[Client, str]]:
        made = []
        for _ in range(OTHERS):
            client = self.others[self.made % len(self.others)]
            made.append((client, client.submit(self._job(f"quiet-{self.made}")).id))
            self.made += 1
            self.sleep(PACE_S)
        return made

    def _job(self, name: str) -> NewJob:
        return NewJob(
            operation="adjust_number",
            subject=f"fairlane-verify/{self.run}/{name}",
            ids=[f"fairlane-verify-{self.run}-no-record-{n}" for n in range(IDS)],
            params={"field": "fairlane_verify", "add": 0},
        )

    def finished(self, jobs: Sequence[tuple[Client, str]]) -> list[JobView]:
        """Raises ClientError, StillRunning among them."""
        return [client.wait(job_id, poll=LOOK_S, timeout=ENDED_WITHIN_S) for client, job_id in jobs]

    def cancel(self, ids: Sequence[str]) -> None:
        """What is left of the flood; most has ended by itself."""
        for job_id in ids:
            try:
                self.noisy.cancel(job_id)
            except ApiProblem:
                continue


def tokens_in(text: str) -> list[str]:
    """One token a line, the noisy tenant's first. Raises LocalError."""
    tokens = [line.strip() for line in text.splitlines() if line.strip()]
    if len(set(tokens)) < MIN_TENANTS:
        raise LocalError(
            f"--tokens has {len(set(tokens))} different tokens; it needs one of the noisy tenant "
            "and at least one of another tenant, better nine"
        )
    return tokens

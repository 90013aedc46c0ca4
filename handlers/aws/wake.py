"""A lane whose service may have no worker: whoever sends a message starts the first one.

Metrics of a queue that slept for six hours can be a quarter of an hour late (Amazon SQS Developer
Guide, CloudWatch metrics), so scaling by them would let the first job wait for as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from ..jobs.words.timing import SECOND

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_ecs import ECSClient

    from ..jobs.words.messages import Message
    from ..jobs.words.ports import Delivery, Depth, LaneQueue, Runtime, Telemetry

AGAIN_AFTER: Final = 60 * SECOND
"""ms in which a process does not look again: scaling takes minutes to end a worker."""


class WakingQueue:
    """``LaneQueue`` that starts a worker of the service after a send, where none is wanted yet.

    A worker that could not be started costs the message nothing: it is in the queue, and scaling
    sees it there some minutes later.
    """

    def __init__(
        self,
        inner: LaneQueue,
        ecs: ECSClient,
        service: str,
        runtime: Runtime,
        telemetry: Telemetry,
    ) -> None:
        """service: ``<cluster>/<service>``."""
        self._inner = inner
        self._ecs = ecs
        self._cluster, _, self._service = service.partition("/")
        self._runtime = runtime
        self._telemetry = telemetry
        self._looked: int | None = None

    def send(self, messages: Sequence[Message]) -> frozenset[int]:
        failed = self._inner.send(messages)
        if len(failed) < len(messages):
            self._wake()
        return failed

    def receive(self, limit: int, wait_seconds: int) -> Sequence[Delivery]:
        return self._inner.receive(limit, wait_seconds)

    def set_visibility(self, receipt: str, seconds: int) -> None:
        self._inner.set_visibility(receipt, seconds)

    def delete(self, receipt: str) -> None:
        self._inner.delete(receipt)

    def depth(self) -> Depth:
        return self._inner.depth()

    def _wake(self) -> None:
        now = self._runtime.now()
        if self._looked is not None and now < self._looked + AGAIN_AFTER:
            return
        try:
            if self._wanted() == 0:
                self._ecs.update_service(
                    cluster=self._cluster, service=self._service, desiredCount=1
                )
                self._telemetry.log("lane_woken", service=self._service)
        except (BotoCoreError, ClientError) as error:
            self._telemetry.log("wake_failed", service=self._service, why=str(error))
            return
        self._looked = now

    def _wanted(self) -> int:
        answer = self._ecs.describe_services(cluster=self._cluster, services=[self._service])
        # A service that is not found is no reason to start anything.
        return min((found["desiredCount"] for found in answer["services"]), default=1)

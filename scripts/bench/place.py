"""Where the benches measure: one local stack, which the first of them brings up."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

from scripts.load import own
from scripts.load.ledger import Ledger
from scripts.local.endings import to_the_end
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps
from scripts.ops.deployment import Deployment, deployment
from scripts.verify.site import stand_still

SLOTS: Final = 2
"""Of each lane."""
SETTINGS: Final[Chosen] = {
    "small_lane": {"maximum_concurrency": SLOTS},
    "bulk_lane": {"slots": SLOTS},
    # Each tenant of the benches' load has records of its own: its jobs one after another, so that
    # no two work on the same.
    "limits": {"tenant_slots_bulk": 1},
}


class Place:
    """A context manager: the stack is up until its end."""

    def __init__(self, steps: Steps, *, short: bool = False) -> None:
        """short: few rounds, to see that every bench runs."""
        self.steps = steps
        self.short = short
        self._stack: LocalStack | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def rounds(self, many: int, few: int = 1) -> int:
        return few if self.short else many

    def close(self) -> None:
        if (stack := self._stack) is not None:
            self._stack = None
            with to_the_end(), self.steps.step("Stopping the local AWS"):
                stack.down()

    def serving(self) -> LocalStack:
        """The stack with both lanes at work. The bulk worker lets every other process have the
        processor first: on AWS it has one of its own. Recovery stands still, as always here: what
        runs once a minute would be in one measurement and not in the next."""
        stack = self._up()
        _listen(stack, enabled=True)
        if not stack.workers.running:
            with self.steps.step("Starting a bulk worker"):
                stack.workers.start(1, behind=True)
        return stack

    def quiet(self) -> LocalStack:
        """The stack with empty queues and nobody at work: the bench does it in its own process."""
        stack = self._up()
        _listen(stack, enabled=False)
        stack.workers.stop()
        settings = Ledger(stack).settings
        for url in (settings.small_queue_url, settings.bulk_queue_url):
            stack.clients.sqs.purge_queue(QueueUrl=url)
        return stack

    def deployment(self) -> Deployment:
        """The stack, quiet, as its workers see it; and the environment is theirs."""
        return deployment(None, self.quiet().name)

    def _up(self) -> LocalStack:
        if self._stack is None:
            self._stack = own.up(
                "bench", steps=self.steps, settings=SETTINGS, workers=0, records=False
            )
            stand_still(self._stack)
        return self._stack


def _listen(stack: LocalStack, *, enabled: bool) -> None:
    """The small lane takes messages, or takes none."""
    client = stack.clients.lambda_
    for mapping in client.list_event_source_mappings()["EventSourceMappings"]:
        if ":sqs:" in mapping.get("EventSourceArn", ""):
            client.update_event_source_mapping(UUID=mapping["UUID"], Enabled=enabled)

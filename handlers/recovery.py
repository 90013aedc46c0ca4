"""The recovery Lambda: once a minute, it mends what crashes left behind."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from . import cold_start
from .bootstrap import world
from .jobs.lifecycle.recovery import Recovery
from .jobs.storage.shards import recording_shards

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

SERVICE: Final = "recovery"
RESERVE_MS: Final = 25_000
"""Time left at which no further item is begun: more than an index and a webhook that hang take."""


def handler(_event: object, context: LambdaContext) -> dict[str, int]:
    """One bounded run; returns how many items of each kind it handled."""

    def out_of_time() -> bool:
        return context.get_remaining_time_in_millis() < RESERVE_MS

    here = recording_shards(world(SERVICE, addresses=True))
    return Recovery(here, out_of_time).run()


if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
    world(SERVICE, addresses=True)
    cold_start.done()

"""What ministack's own check of IAM needs, to decide as AWS does.

It is for the version that ``emulator`` corrects.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from ministack import app  # type: ignore[import-untyped]  # it has no types
from ministack.core import iam_actions  # type: ignore[import-untyped]  # it has no types


def enforce() -> None:
    """Correct it; nothing is enforced without ``ministack.ENFORCED``."""
    app.pin_request_origin = as_if_encrypted(app.pin_request_origin)
    iam_actions.extract_iam_action = without_batches(iam_actions.extract_iam_action)


def as_if_encrypted(pin: Callable[..., None]) -> Callable[[str, bool], None]:
    """What notes where a request comes from: each counts as encrypted. The policies of bucket and
    queues refuse what is not, and nothing of a local stack leaves this machine."""
    return lambda source, _: pin(source, secure_transport=True)


def without_batches(action_of: Callable[..., str | None]) -> Callable[..., str | None]:
    """What names the action of a request. SQS has none for batches: sending one takes the right to
    send a message (SQS developer guide, API permissions)."""

    @wraps(action_of)
    def single(*request: Any, **more: Any) -> str | None:
        action = action_of(*request, **more)
        return action.removesuffix("Batch") if action and action.startswith("sqs:") else action

    return single

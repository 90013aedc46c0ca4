"""A function's cold start: its end, and how often jobs wait for one."""

from __future__ import annotations

import gc
import os

_counted = False


def delayed_this_call() -> bool:
    """Whether the process started for the call that it serves: true once. A process that was
    started ahead (provisioned concurrency) lets no job wait for it."""
    global _counted
    first, _counted = not _counted, True
    return first and os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "provisioned-concurrency"


def done() -> None:
    """Collect garbage from here on, but never among the objects made by the start, which stay."""
    gc.freeze()
    gc.enable()

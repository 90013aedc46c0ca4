"""The small lane's entrypoint, each of its rules for batches taken out at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from handlers import small_lane

from .mutating import registry

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

MUTATIONS, mutation = registry()


@mutation
def a_function_reports_no_message_as_failed() -> AbstractContextManager[object]:
    return _reporting(0)


@mutation
def a_function_reports_the_first_failure_only() -> AbstractContextManager[object]:
    return _reporting(1)


def _reporting(most: int) -> AbstractContextManager[object]:
    real = small_lane.handler

    def handler(*args: Any) -> Any:
        return {"batchItemFailures": real(*args)["batchItemFailures"][:most]}

    return patch.object(small_lane, "handler", handler)

"""What ministack tells a function of the path that its client requested, as API Gateway does.

API Gateway's event has the whole path of the request in ``requestContext.path``, and Fairlane makes
the addresses in its answers from that. ministack puts the stage and the route there. For an API
that is addressed by path (``/_aws/execute-api/ID/live``) this is not what the client requested, so
``url`` and ``Location`` led nowhere.

It is for the version that ``emulator`` corrects.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import wraps
from types import ModuleType
from typing import Any, Final, TypeAlias

from ministack import app  # type: ignore[import-untyped]  # it has no types
from ministack.services import apigateway_v1  # type: ignore[import-untyped]  # it has no types

Serve: TypeAlias = Callable[..., Coroutine[Any, Any, Any]]
Event: TypeAlias = dict[str, Any]

_path: Final[ContextVar[str]] = ContextVar("path")
"""Of the request that is being served; each is served in a context of its own."""


def tell() -> None:
    """Correct it."""
    _replace(app, "_handle_execute_api_request", noted)
    _replace(apigateway_v1, "_build_lambda_event_v1", told)


def _replace(module: ModuleType, name: str, by: Callable[[Any], Any]) -> None:
    setattr(module, name, by(getattr(module, name)))


def noted(serve: Serve) -> Serve:
    """What serves the requests to deployed APIs."""

    @wraps(serve)
    async def handle(host: str, path: str, *request: Any, **more: Any) -> Any:
        before = _path.set(path)
        try:
            return await serve(host, path, *request, **more)
        finally:
            _path.reset(before)

    return handle


def told(event_of: Callable[..., Event]) -> Callable[..., Event]:
    """What makes the event of a request; that of no request is as it was."""

    @wraps(event_of)
    def event(*request: Any, **more: Any) -> Event:
        made = event_of(*request, **more)
        made["requestContext"]["path"] = _path.get(made["requestContext"]["path"])
        return made

    return event

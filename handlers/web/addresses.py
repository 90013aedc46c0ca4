"""Where the API is for the client of a request: behind a stage, a base path, or neither.

API Gateway names the requested path as a whole (``requestContext.path``). It takes the stage off
the event's ``path``, but leaves the base path of a custom domain on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Mapping

JOBS: Final = "/v1/jobs"


def location(job_id: str, base: str) -> str:
    """The job's address, for a client whose request went to ``base``: an absolute path, which
    resolves against the request's own address (RFC 9110, section 10.2.2)."""
    return f"{base}{JOBS}/{job_id}"


def route_path(event: Mapping[str, Any]) -> str:
    """The path of a route, without stage and base path. event: a REST API's proxy event."""
    path = str(event["path"])
    return path[_start_of(_proxy(event), path) :]


def base_path(event: Mapping[str, Any]) -> str:
    """What stands before the path of a route in the path that the client requested: ``/live``, or
    nothing on a custom domain without a base path."""
    requested = str(event["requestContext"].get("path") or "")
    return requested[: _start_of(_proxy(event) or route_path(event), requested)]


def _proxy(event: Mapping[str, Any]) -> str:
    return str((event.get("pathParameters") or {}).get("proxy") or "")


def _start_of(route: str, path: str) -> int:
    """Where the route begins in the path; 0 when it is not in it. One may be percent-encoded, and
    only the path has a slash at its end."""
    wanted = f"/{unquote(route).strip('/')}".rstrip("/")
    for at, letter in enumerate(path):
        if letter == "/" and unquote(path[at:]).rstrip("/") == wanted:
            return at
    return 0

"""Requests that no route answers: another method of a known path, or no path of the API."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Final

from .problems import Problem, not_found
from .routes import ROUTES

PARAMETER: Final = re.compile(r"\{\w+\}")


def no_route(method: str, path: str) -> Problem:
    """405 with the methods of the path; 404 when it has none, or has this one but no id can have
    the characters that stand in its place."""
    allowed = methods_of(path)
    if not allowed or method in allowed:
        return not_found("there is no such route")
    listed = ", ".join(allowed)
    return Problem(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "method_not_allowed",
        f"this route takes only {listed}",
        headers={"Allow": listed},
    )


def methods_of(path: str) -> tuple[str, ...]:
    """The methods of the routes with this path, sorted; HEAD wherever there is GET."""
    found = {
        route.method.upper()
        for route in ROUTES
        if re.fullmatch(PARAMETER.sub("[^/]+", route.path), path)
    }
    return tuple(sorted(found | ({"HEAD"} if "GET" in found else set())))

"""A request, as API Gateway hands it to the function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .addresses import base_path, route_path
from .media import body_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext


@dataclass(frozen=True)
class Request:
    """One request to a REST API."""

    event: Mapping[str, Any]
    """The proxy event."""
    context: LambdaContext
    """Of the function's call."""

    @property
    def method(self) -> str:
        """The route's: HEAD is GET without the body (RFC 9110, section 9.3.2)."""
        return "GET" if self.is_head else str(self.event["httpMethod"]).upper()

    @property
    def is_head(self) -> bool:
        return str(self.event["httpMethod"]).upper() == "HEAD"

    @property
    def path(self) -> str:
        """The route's, without stage and base path."""
        return route_path(self.event)

    @property
    def base(self) -> str:
        """What stands before the route's path in the client's address."""
        return base_path(self.event)

    @property
    def verified(self) -> Mapping[str, Any]:
        """What API Gateway says of the request, its caller among it."""
        found: Mapping[str, Any] = self.event["requestContext"]
        return found

    @property
    def id(self) -> str:
        return str(self.verified.get("requestId", ""))

    def header(self, name: str) -> str | None:
        """The header of that name, whose case does not matter."""
        sent: Mapping[str, str] = self.event.get("headers") or {}
        wanted = name.lower()
        return next((value for each, value in sent.items() if each.lower() == wanted), None)

    def text(self) -> str:
        """The body. Raises Problem, see ``media.body_text``."""
        return body_text(
            self.event.get("body") or "",
            kind=self.header("Content-Type"),
            coding=self.header("Content-Encoding"),
            is_base64=bool(self.event.get("isBase64Encoded")),
        )

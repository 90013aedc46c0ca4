"""Who calls, and what they may do: from what API Gateway verified, and from nothing a request
carries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from .problems import Problem
from .titles import CHALLENGE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..settings import CallerSettings

MAX_PRINCIPAL: Final = 256
SESSION: Final = re.compile(r"arn:([a-z-]+):sts::([0-9]{12}):assumed-role/([^/]+)/.+")
ROLE: Final = re.compile(r"arn:([a-z-]+):iam::([0-9]{12}):role/(?:.*/)?([^/]+)")


class Scope(StrEnum):
    READ = "jobs:read"
    WRITE = "jobs:write"


@dataclass(frozen=True)
class Callers:
    """Names the tenant of a request's caller, as the deployment's settings say."""

    settings: CallerSettings

    def tenant(self, context: Mapping[str, Any], needs: Scope) -> str:
        """context: the event's ``requestContext``. Raises Problem: 401 for nobody we know, 403
        for a token without the scope."""
        if self.settings.caller_auth == "iam":
            return self._signer(context.get("identity") or {})
        authorizer = context.get("authorizer") or {}
        tenant = authorizer.get("tenant")
        if not isinstance(tenant, str) or not tenant:
            raise _nobody("the request has no verified tenant", CHALLENGE)
        if self.settings.caller_enforce_scopes:
            _check(authorizer.get("scopes"), needs)
        return tenant

    def principal(self, context: Mapping[str, Any]) -> str:
        """Who calls, as verified: the token's subject, or the ARN of the signer. Empty when the
        request has none; at most ``MAX_PRINCIPAL`` characters."""
        if self.settings.caller_auth == "iam":
            who = (context.get("identity") or {}).get("userArn")
        else:
            who = (context.get("authorizer") or {}).get("principalId")
        text = who if isinstance(who, str) else ""
        return text.encode("utf-8", "replace").decode()[:MAX_PRINCIPAL]

    def _signer(self, identity: Mapping[str, Any]) -> str:
        caller = identity.get("userArn")
        if not isinstance(caller, str) or not caller:
            raise _nobody("the request was not signed")
        who = _identity(caller)
        for principal, tenant in self.settings.caller_principals.items():
            if _identity(principal) == who:
                return tenant
        raise Problem(
            HTTPStatus.FORBIDDEN, "unknown_principal", "this IAM principal stands for no tenant"
        )


def _identity(arn: str) -> tuple[str, ...]:
    """A role and its sessions are one: a session's ARN has the role's name, but not its path."""
    match = SESSION.fullmatch(arn) or ROLE.fullmatch(arn)
    return match.groups() if match else (arn,)


def _check(scopes: object, needs: Scope) -> None:
    given = scopes.split() if isinstance(scopes, str) else ()
    if needs not in given:
        raise Problem(
            HTTPStatus.FORBIDDEN,
            "insufficient_scope",
            f"the token does not grant {needs.value}",
            more={"scope": needs.value},
            headers=_asking(f'{CHALLENGE}, error="insufficient_scope", scope="{needs.value}"'),
        )


def _nobody(why: str, challenge: str | None = None) -> Problem:
    headers = None if challenge is None else _asking(challenge)
    return Problem(HTTPStatus.UNAUTHORIZED, "unauthorized", why, headers=headers)


def _asking(challenge: str) -> dict[str, str]:
    return {"WWW-Authenticate": challenge}

"""The API of a local stack, for commands that only call it: its address and tokens, without what
starts and stops it."""

from __future__ import annotations

from dataclasses import dataclass

from . import DEFAULT_NAME
from .errors import NotUp
from .identity import Issuer
from .state import StackFolder


@dataclass(frozen=True)
class Target:
    """A local stack that is up."""

    url: str
    issuer: Issuer

    def token(self, tenant: str) -> str:
        return self.issuer.token(tenant)


def target(name: str | None) -> Target:
    """Of the stack of that name, or of the default one. Raises NotUp."""
    folder = StackFolder(name or DEFAULT_NAME)
    state = folder.read()
    if not state.up:
        raise NotUp(not_up(folder.name))
    return Target(state.api_url, Issuer(folder.path))


def not_up(name: str) -> str:
    return f"the stack {name!r} is not up. Start it with `fairlane local up --name {name}`"

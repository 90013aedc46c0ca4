"""What an operator's command sees of a deployment, around a world of a test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from handlers.jobs.words.ports import World

OPERATOR: Final = "arn:aws:sts::123456789012:assumed-role/Operator/ada"


def seen_by_operator(world: World, **more: object) -> SimpleNamespace:
    """The deployment of a world, called by ``OPERATOR``."""
    return SimpleNamespace(world=world, operator=lambda: OPERATOR, **more)

"""Operations of a team's own that a test imports into its process, and their end."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from handlers.operations import registry


def forget(monkeypatch: pytest.MonkeyPatch, package: str) -> Iterator[None]:
    """For a fixture: what is declared meanwhile is declared for this test only."""
    registry.all_operations()
    monkeypatch.setattr(registry, "_found", dict(registry._found))
    monkeypatch.setattr(sys, "path", list(sys.path))
    registry.all_operations.cache_clear()
    yield
    registry.all_operations.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]

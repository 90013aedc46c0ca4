"""The deployed parts on moto: real settings, real bootstrap, real adapters, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.handlers.deployment import Deployment, deployed


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """An empty deployment."""
    with deployed(monkeypatch) as here:
        yield here

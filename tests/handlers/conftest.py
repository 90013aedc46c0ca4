"""The deployed parts on moto: real settings, real bootstrap, real adapters, in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handlers import authorizer
from tests.handlers.deployment import Deployment, deployed
from tests.support.tokens import KeySet, settings_for


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    """An empty deployment."""
    with deployed(monkeypatch) as here:
        yield here


@pytest.fixture
def keys() -> Iterator[KeySet]:
    """The key set of the tests' issuer, served."""
    served = KeySet()
    yield served
    served.stop()


@pytest.fixture
def own_issuer(keys: KeySet, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The authorizer's settings name the tests' issuer."""
    monkeypatch.setattr(authorizer, "KEYS_TIMEOUT", 600)  # a busy machine answers late
    for name, value in settings_for(keys.url).to_env().items():
        monkeypatch.setenv(name, value)
    authorizer.verifier.cache_clear()
    yield
    authorizer.verifier.cache_clear()

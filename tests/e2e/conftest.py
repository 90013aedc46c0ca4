"""One local stack for all tests of this folder: it takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts.local.stack import LocalStack


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' stacks keep their state, apart from those of the checkout."""
    return tmp_path_factory.mktemp("stacks")


@pytest.fixture(scope="session")
def stack(stacks: Path) -> Iterator[LocalStack]:
    """Deployed, with one bulk worker and all airports. Tests use tenants or records of their own,
    and leave it running."""
    with LocalStack("shared", root=stacks) as running:
        yield running

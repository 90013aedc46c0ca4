"""One local stack and one wheel for all tests of this folder: each takes seconds."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from opensearchpy import OpenSearch

from scripts.local.stack import LocalStack
from scripts.opensearch.embedded import EmbeddedSearch
from tests.support.installed import Installed, wheel_of


@pytest.fixture(scope="session", autouse=True)
def interruptible() -> None:
    """Shells start what runs in the background with SIGINT ignored, and so would be every process
    that a test starts in order to interrupt it. What has a handler here is the default there."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' stacks keep their state, apart from those of the checkout."""
    return tmp_path_factory.mktemp("stacks")


@pytest.fixture(scope="session")
def stack(stacks: Path) -> Iterator[LocalStack]:
    """Deployed, with one bulk worker and all airports. Tests use tenants or records of their own,
    and leave it running."""
    made = LocalStack("shared", root=stacks)
    made.measured = True
    with made as running:
        yield running


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel_of(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def team(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installed:
    """The environment of a team that uses Fairlane in a CDK app of its own."""
    made = Installed(tmp_path_factory.mktemp("team"), wheel, extra="[local]")
    made.compile_wheel()
    return made


@pytest.fixture(scope="module")
def embedded_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedSearch]:
    with EmbeddedSearch(tmp_path_factory.mktemp("embedded")) as engine:
        yield engine


@pytest.fixture
def embedded(embedded_engine: EmbeddedSearch) -> Iterator[OpenSearch]:
    with embedded_engine.client() as client:
        yield client

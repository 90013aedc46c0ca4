"""What every test gets: no network but loopback (none at all where a test should be pure), no
way to anybody's AWS account, and generated input that is the same in every CI run."""

from __future__ import annotations

import os
import socket
from ipaddress import ip_address
from typing import Any, Final

import pytest
from hypothesis import settings

from tests.support.groups import folder_of, groups_of, rank, shuffle

PURE: Final = frozenset({"unit", "simulation", "infra"})
"""Folders whose tests open no connection at all."""

# Local runs look for new counterexamples; CI must not fail by chance. No deadline in either: a
# test must not depend on the wall clock.
settings.register_profile("search", deadline=None)
settings.register_profile("repeat", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("repeat" if os.environ.get("CI") else "search")

# A client made by accident must find neither credentials nor the instance's metadata.
os.environ.pop("AWS_PROFILE", None)
os.environ.update(
    AWS_ACCESS_KEY_ID="testing",
    AWS_SECRET_ACCESS_KEY="testing",
    AWS_SESSION_TOKEN="testing",
    AWS_DEFAULT_REGION="eu-west-1",
    AWS_EC2_METADATA_DISABLED="true",
)


class NetworkUsed(BaseException):
    """A test opened a connection it must not open. No ``except Exception`` hides it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    words = "run files, and the tests of each, in a random order: the same one for the same SEED"
    parser.addoption("--shuffle", type=int, metavar="SEED", help=words)


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    groups = groups_of(items)
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (group := groups.get(item.path)):
            item.add_marker(pytest.mark.xdist_group(group))
    seed = config.getoption("shuffle")
    if seed is not None:
        shuffle(items, seed)
    elif hasattr(config, "workerinput"):  # in a single process the order is that of the files
        items.sort(key=lambda item: rank(item.path, groups))


@pytest.fixture(autouse=True)
def _network(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    pure = folder_of(request.path) in PURE
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and (pure or not _loopback(address[0])):
            raise NetworkUsed(f"connection to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

"""A node on a developer's machine and in CI."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from scripts.opensearch.errors import NoWay
from scripts.opensearch.node import OpenSearchNode


def or_skip(start: Callable[[], OpenSearchNode], environ: Mapping[str, str]) -> OpenSearchNode:
    """A skip is for a developer without Java: CI has to see the node."""
    try:
        return start()
    except NoWay as missing:
        if environ.get("CI"):
            raise
        pytest.skip(str(missing))

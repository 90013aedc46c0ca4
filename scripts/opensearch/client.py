"""The client of both engines: the one that ships."""

from __future__ import annotations

from typing import Final

from opensearchpy import OpenSearch

TIMEOUT_S: Final = 30


def client_of(url: str) -> OpenSearch:
    """A client that never retries by itself, so that a caller sees each answer; close it, or use
    it in a ``with``."""
    return OpenSearch(hosts=[url], timeout=TIMEOUT_S, max_retries=0)

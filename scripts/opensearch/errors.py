"""What can go wrong with a search engine. Each message names the cause and what to do."""

from __future__ import annotations

from scripts.local.errors import LocalError


class SearchEngineError(LocalError):
    """The search engine cannot do what was asked."""


class NoWay(SearchEngineError):
    """This machine lacks the programs to run OpenSearch at all."""

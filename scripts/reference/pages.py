"""Every generated page by the name of its file."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from . import commands, events, limits, metrics, problems, routes, settings
from .source import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOLDER: Final[Path] = ROOT / "docs" / "reference"
INDEX: Final = """\
# Reference

Written from the code by `make reference`; a test fails when a page and the code differ.

| page | what it lists |
| --- | --- |
| [Settings](settings.md) | what a deployment chooses, with defaults |
| [Routes](routes.md) | the API: for each route a request and its answer |
| [Errors](errors.md) | problems by `code`, and why a job failed or waits |
| [Events and webhooks](events.md) | what Fairlane sends, and the OpenAPI document of it |
| [Command line](commands.md) | every command, its options and its exit statuses |
| [Metrics](metrics.md) | what is measured, with unit and dimensions |
| [Limits and retention](limits.md) | how large things may be, and how long they are kept |
"""


@cache
def pages() -> Mapping[str, str]:
    return {
        "index.md": INDEX,
        "commands.md": commands.page(),
        "errors.md": problems.page(),
        "events.md": events.page(),
        "limits.md": limits.page(),
        "metrics.md": metrics.page(),
        "routes.md": routes.page(),
        "settings.md": settings.page(),
        "webhooks.json": events.webhooks_json(),
    }

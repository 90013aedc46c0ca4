"""The settings that pages show are settings, and a deployment takes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from handlers.settings import SettingsError
from infra.settings import DeploySettings
from tests.support.pages import blocks

DOCS: Final = Path(__file__).parents[2] / "docs"
KNOWN: Final = frozenset(DeploySettings.model_fields)
FOR_ONE_MACHINE: Final = "webhook_loopback"


def shown(text: str) -> list[dict[str, Any]]:
    """What the JSON blocks of a page name of the settings; a block may leave out its braces."""
    found = []
    for block in blocks(text, "json"):
        read = json.loads(block if block.lstrip().startswith("{") else f"{{{block}}}")
        read = read.get("fairlane", read)
        if read and read.keys() <= KNOWN:
            found.append(read)
    return found


def taken(chosen: dict[str, Any]) -> DeploySettings:
    """Over the profile dev. Raises SettingsError."""
    local = FOR_ONE_MACHINE in json.dumps(chosen)
    return DeploySettings.read({"profile": "dev", "local": local, **chosen})


SHOWN: Final = [
    pytest.param(each, id=f"{page.name}-{number}")
    for page in [
        DOCS / "deploy.md",
        DOCS / "effects.md",
        DOCS / "upgrade.md",
        *sorted((DOCS / "how-to").glob("*.md")),
    ]
    for number, each in enumerate(shown(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("chosen", SHOWN)
def test_a_deployment_takes_the_settings_of_the_page(chosen: dict[str, Any]) -> None:
    assert isinstance(taken(chosen), DeploySettings)


def test_the_pages_about_settings_show_some() -> None:
    pages = {str(each.id).rpartition("-")[0] for each in SHOWN}
    assert pages >= {
        "own-vpc.md",
        "own-table.md",
        "webhooks.md",
        "index-in-step.md",
        "deploy.md",
        "effects.md",
    }


def test_settings_that_contradict_each_other_are_found() -> None:
    [chosen] = shown('```json\n"bulk_lane": {"network": "own"}\n```\n')
    with pytest.raises(SettingsError, match="own needs vpc"):
        taken(chosen)

"""The OpenAPI document: as generated and committed beside this module, and as one is served."""

from __future__ import annotations

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..jobs.words.limits import Limits
    from ..settings import CallerSettings

FILE: Final = Path(__file__).with_name("openapi.json")
TOKEN: Final = "token"  # noqa: S105  a name
IAM: Final = "iam"
"""The security schemes, by the names that ``CallerSettings.caller_auth`` has for them."""


@cache
def packaged() -> str:
    return FILE.read_text(encoding="utf-8")


def served(caller: CallerSettings, limits: Limits, base: str) -> str:
    """What a deployment with these settings says of itself. base: where the API is for the client,
    see ``addresses``: a server's address may be relative to that of the document."""
    scopes = caller.caller_enforce_scopes
    return _made(caller.caller_auth, scopes=scopes, max_ids=limits.max_inline_ids, base=base)


@lru_cache(maxsize=8)
def _made(scheme: str, *, scopes: bool, max_ids: int, base: str) -> str:
    made = json.loads(packaged())
    made["servers"] = [{"url": base or "/"}]
    parts = made["components"]
    parts["securitySchemes"] = {scheme: parts["securitySchemes"][scheme]}
    parts["schemas"]["JobRequest"]["properties"]["ids"]["maxItems"] = max_ids
    for path in made["paths"].values():
        for operation in path.values():
            [needed] = [each[scheme] for each in operation["security"] if scheme in each]
            operation["security"] = [{scheme: needed if scopes else []}]
    return json_text(made)


def json_text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

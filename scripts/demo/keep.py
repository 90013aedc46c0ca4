"""What somebody needs to go on with a stack that was left up."""

from __future__ import annotations

import json
import shlex
from typing import Final

from scripts.load.plan import FIELD
from scripts.local.stack import TOKEN_S, LocalStack

from .report import Kept

RECORDS: Final = 3
JSON: Final = "content-type: application/json"


def kept(stack: LocalStack, tenant: str, ids: tuple[str, ...]) -> Kept:
    """An address, a token of the tenant, and two lines for a shell: what jobs there are, and one
    more job over some of the tenant's records."""
    token = stack.issuer.token(tenant, expires_in=TOKEN_S)
    job = {
        "operation": "adjust_number",
        "subject": "airports/by-hand",
        "params": {"field": FIELD, "add": 1},
        "ids": ids[:RECORDS],
    }
    authorization = f"authorization: Bearer {token}"
    jobs = f"{stack.api.url}/v1/jobs"
    calls = (
        ["curl", "-sS", "-H", authorization, f"{jobs}?limit=3"],
        ["curl", "-sS", "-H", authorization, "-H", JSON, "-d", json.dumps(job), jobs],
    )
    return Kept(
        name=stack.name,
        api=stack.api.url,
        tenant=tenant,
        token=token,
        curl=tuple(map(shlex.join, calls)),
        stop=f"fairlane local down --name {stack.name}",
    )

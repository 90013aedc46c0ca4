"""What a deployed stack's web firewall lets through: requests of the sizes and texts that firewalls
refuse, sent to a stack that is up, and who answered each.

Nothing is created there: jobs are only validated, and what is sent elsewhere is no good request.
"""

from __future__ import annotations

import time
from typing import Final

import urllib3

from scripts.ops.firewall import Probe, probes, send

from .framework import Expectation, PartReport, Report

NAME: Final = "waf"
SHOWS: Final = (
    "The web firewall of a deployed stack passes large bodies and free text on POST /v1/jobs, and "
    "on no other route."
)


def report(url: str, token: str) -> Report:
    """Send every probe to the API at ``url`` (with its stage) with a token of any tenant."""
    start = time.monotonic()
    with urllib3.PoolManager() as pool:
        seen = tuple(_expectation(pool, url.rstrip("/"), token, probe) for probe in probes())
    part = PartReport(part="run", expectations=seen, seconds=round(time.monotonic() - start, 1))
    return Report(scenario=NAME, shows=SHOWS, parts=(part,))


def _expectation(pool: urllib3.PoolManager, url: str, token: str, probe: Probe) -> Expectation:
    bearer = {"authorization": f"Bearer {token}"}
    seen = send(pool, url, probe, lambda *_: bearer)
    return Expectation.of(
        probe.what,
        expected=f"{probe.status.value} by {probe.who}",
        saw=seen,
        ok=(seen.status, seen.who) == (probe.status, probe.who),
    )

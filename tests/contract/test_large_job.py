"""How much a worker's memory grows with the ids of its job."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
MANY: Final = 500_000
ALLOWED: Final = 40 * 1024
"""KiB from 1,000 ids to half a million."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")


def large_job(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.support.large_job", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    count = int(arguments[0])
    assert (found["state"], found["total"], found["succeeded"], found["duplicates"]) == (
        "SUCCEEDED",
        count,
        count,
        count // 10,
    ), found
    return found


def test_memory_does_not_grow_with_the_ids() -> None:
    """Also shown: dropping repeats in memory would be seen."""
    small = large_job("1000")["peak_kib"]
    assert large_job(str(MANY))["peak_kib"] - small <= ALLOWED
    assert large_job(str(MANY), "set")["peak_kib"] - small > ALLOWED

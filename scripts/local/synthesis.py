"""Synthesis of the app that is deployed to AWS, with the context of a local stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from .errors import LocalError
from .settings import Chosen

PROJECT: Final = Path(__file__).resolve().parents[2]
TIMEOUT_S: Final = 300


def synthesise(settings: Chosen, out: Path) -> Path:
    """Write the cloud assembly to ``out`` and return it. Raises LocalError with what the app said,
    such as the two settings that contradict each other."""
    run = subprocess.run(
        [sys.executable, "app.py"],
        cwd=PROJECT,
        env=_environment(settings, out),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    if run.returncode:
        said = "\n".join(run.stderr.strip().splitlines()[-25:])
        raise LocalError(f"synthesis failed; correct what the app says and try again:\n{said}")
    return out


def _environment(settings: Chosen, out: Path) -> dict[str, str]:
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(_context(settings)),
    }


def _context(settings: Chosen) -> dict[str, Any]:
    committed = json.loads((PROJECT / "cdk.json").read_text())["context"]
    return {
        **committed,
        "fairlane": settings,
        # The functions import from the environment that runs the local AWS, so no wheels.
        "aws:cdk:bundling-stacks": [],
    }

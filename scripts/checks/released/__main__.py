"""``python -m scripts.checks.released``: write again what is kept of the last release.

The files do not change unless the release or the list of moments does.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from . import moments
from .source import KEPT, VERSION, NoHistory, keep, unpack

FILE: Final = KEPT / f"{VERSION}.json"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            keep()
            release = unpack(Path(folder))
        except NoHistory as error:
            sys.exit(str(error))
        # Run as a file, beside nothing of this version: its folder is no package there.
        program = release / "moments_of_this_version.py"
        program.write_bytes(Path(moments.__file__).read_bytes())
        made = subprocess.run(  # noqa: S603  our own file
            [sys.executable, str(program)],
            env={**os.environ, "PYTHONPATH": str(release)},
            cwd=release,
            stdout=subprocess.PIPE,
            check=True,
        )
    FILE.write_bytes(made.stdout)


if __name__ == "__main__":
    main()

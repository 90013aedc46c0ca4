"""The last release's own code: out of git, or a worker's as ``tests/released`` keeps it."""

from __future__ import annotations

import io
import lzma
import subprocess
import tarfile
from pathlib import Path
from typing import Final

VERSION: Final = "0.1.0"
COMMIT: Final = "a581a3f53df583526cff3c65ba041c682cb4ecce"
"""Where the change log cut it."""
ROOT: Final = Path(__file__).resolve().parents[3]
KEPT: Final = ROOT / "tests" / "released"
WORKER: Final = ("fairlane", "handlers")
"""The packages that a worker of the release runs."""
ARCHIVE: Final = KEPT / f"{VERSION}.tar.xz"
"""Those packages, so that a checkout without history has them."""


class NoHistory(Exception):
    """This checkout does not have the release's commit."""


def unpack(folder: Path) -> Path:
    """The release's files in this folder. Raises NoHistory."""
    return _extracted(_archived(), folder)


def keep() -> None:
    """Write ``ARCHIVE`` again; the same bytes as long as the commit is the same. Raises
    NoHistory."""
    ARCHIVE.write_bytes(lzma.compress(_archived(*WORKER), preset=9))


def unpack_worker(folder: Path) -> Path:
    """A worker's code of the release in this folder; needs no history."""
    return _extracted(lzma.decompress(ARCHIVE.read_bytes()), folder)


def _archived(*paths: str) -> bytes:
    """A tar file of these paths of the release, of all without any. Raises NoHistory."""
    archive = subprocess.run(  # noqa: S603  a constant command
        ["git", "-C", str(ROOT), "archive", "--format=tar", COMMIT, *paths],  # noqa: S607  git is where the user has it
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        why = archive.stderr.decode(errors="replace").strip()
        raise NoHistory(f"the commit of {VERSION} is not here ({why}): fetch the whole history")
    return archive.stdout


def _extracted(tar: bytes, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(tar)) as files:
        files.extractall(folder, filter="data")
    return folder

"""What a function's code is uploaded as: an archive, with the bytecode beside the sources.

The local AWS unpacks a function's code once more for each of its processes. Without bytecode, each
would compile every module that it imports.
"""

from __future__ import annotations

import contextlib
import io
import marshal
import zipfile
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from typing import Final

EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every zipped file, so that the same code is the same archive."""
BY_HASH: Final = (0b01).to_bytes(4, "little")
"""The flags of bytecode that is never compared with its source (PEP 552): the sources get another
time stamp when they are unpacked."""


def packed(path: Path, packaging: str) -> bytes:
    """An asset as it is uploaded. packaging: ``file`` or ``zip``, as its assembly says."""
    if packaging == "file":
        return path.read_bytes()
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file():
                name, source = str(file.relative_to(path)), file.read_bytes()
                archive.writestr(zipfile.ZipInfo(name, date_time=EPOCH), source)
                if file.suffix == ".py":
                    _add_bytecode(archive, name, source)
    return content.getvalue()


def _add_bytecode(archive: zipfile.ZipFile, name: str, source: bytes) -> None:
    """Of this interpreter, which runs the functions too. What does not compile has none: the
    function says why when it imports it."""
    with contextlib.suppress(SyntaxError, ValueError):
        code = compile(source, name, "exec", dont_inherit=True)
        bytecode = MAGIC_NUMBER + BY_HASH + source_hash(source) + marshal.dumps(code)
        archive.writestr(zipfile.ZipInfo(cache_from_source(name), date_time=EPOCH), bytecode)

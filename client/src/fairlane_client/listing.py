"""Writing a report here, from pages, in the form that the API writes it in."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from .words import ReportFormat

if TYPE_CHECKING:
    from .models import ItemView

COLUMNS: Final = ("outcome", "id", "reason", "sink")
AS_TEXT: Final = "'"
FORMULA_STARTS: Final = (*"=+-@\t\r", *"＝＋－＠", AS_TEXT)  # noqa: RUF001  they count, too
"""With one of these a spreadsheet takes a cell for a formula; ``AS_TEXT`` before it makes it one of
text."""


def write(rows: Iterable[tuple[str, ItemView]], path: Path, form: ReportFormat) -> int:
    """Put a file of these records, each with its outcome, at ``path``, in the place of an older
    one; returns how many. A file that is not whole is not left. Raises OSError, and what ``rows``
    raises."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    count = 0
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            for line in _lines(rows, form):
                file.write(line)
                count += 1
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    return count - (form is ReportFormat.CSV)


def _lines(rows: Iterable[tuple[str, ItemView]], form: ReportFormat) -> Iterator[str]:
    if form is ReportFormat.CSV:
        yield _csv(COLUMNS)
    for outcome, item in rows:
        if form is ReportFormat.CSV:
            yield _csv((outcome, item.id, item.reason, item.sink or ""))
        else:
            yield json.dumps({"outcome": outcome, **item.as_json()}, ensure_ascii=False) + "\n"


def _csv(row: tuple[str, ...]) -> str:
    text = io.StringIO()
    cells = (AS_TEXT + cell if cell.startswith(FORMULA_STARTS) else cell for cell in row)
    csv.writer(text).writerow(cells)
    return text.getvalue()

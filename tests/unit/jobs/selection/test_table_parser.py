"""Rows of a table: each line is checked, and a key comes once."""

from __future__ import annotations

import gzip
from decimal import Decimal

import pytest

from handlers.jobs.selection.table_parser import parse_rows
from handlers.jobs.selection.upload_parser import BadUpload
from handlers.jobs.words.upload import Format, UploadForm

JSONL = UploadForm(format=Format.JSONL, column="k")
CSV = UploadForm(format=Format.CSV, column="k")


def rows(content: bytes, form: UploadForm = JSONL, most: int = 1000) -> dict[str, object]:
    return {key: dict(row) for key, row in parse_rows([content], form, max_bytes=most)}


def test_json_lines_keep_exact_numbers() -> None:
    content = b'\n{"k": "007", "n": 0.10}\r\n{"k": "7", "b": true, "x": null, "i": 12}\n'
    assert rows(content) == {
        "007": {"k": "007", "n": Decimal("0.1")},
        "7": {"k": "7", "b": True, "x": None, "i": 12},
    }


def test_cells_of_csv_are_texts() -> None:
    content = '\ufeffk,n\n007,"1,5"\n\n7,\n'.encode()
    assert rows(content, CSV) == {"007": {"k": "007", "n": "1,5"}, "7": {"k": "7", "n": ""}}
    packed = CSV.model_copy(update={"gzip": True})
    assert rows(gzip.compress(content), packed) == rows(content, CSV)


@pytest.mark.parametrize(
    ("content", "form", "why"),
    [
        (b'{"k": "a"}\n{"k": "a"}\n', JSONL, "line 2: has the key 'a' of line 1 once more"),
        (b'{"k": 7}\n', JSONL, "line 1: the key 'k' is no text"),
        (b'{"k": ""}\n', JSONL, "line 1: the key"),
        (b'{"x": 7}\n', JSONL, "line 1: has no field 'k', the key; there are: x"),
        (b'{"k": "a", "x": [1]}\n', JSONL, "line 1: 'x' is a list or an object"),
        (b'{"k": "a", "x": 1e999}\n', JSONL, "line 1: 'x': "),
        (b'{"k": "a", "k": "b"}\n', JSONL, "line 1: is not JSON: the name 'k' is given more"),
        (b'"a"\n', JSONL, "line 1: is not an object"),
        (b"{\n", JSONL, "line 1: is not JSON"),
        (b"k,x,x\n", CSV, "line 1: names the column 'x' twice"),
        (b"k,x\na\n", CSV, "line 2: has 1 fields, the header names 2"),
        (b"x\na\n", CSV, "line 2: has no field 'k'"),
        (b'k\n"a', CSV, "line 2: is not CSV"),
        (b"k\n", CSV, "the table has no row"),
        (b"\n", JSONL, "the table has no row"),
        (b'{"k": "' + b"a" * 1000 + b'"}', JSONL, "the file is larger than 1000 bytes"),
        (b'"a"\n', UploadForm(format=Format.JSONL), "names no 'column'"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(
    content: bytes, form: UploadForm, why: str
) -> None:
    with pytest.raises(BadUpload) as refused:
        rows(content, form)
    assert why in str(refused.value)


class Name(str):
    """A column's name that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_each_name_of_a_header_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line has room for 200,000 names: comparing each with all of them took ten minutes."""
    names = ["k", *map(str, range(500))]
    header = [Name(name) for name in names]
    body = ["a", *names[1:]]
    monkeypatch.setattr("csv.reader", lambda *_, **__: iter([header, body]))
    Name.compared = 0
    assert rows(b"", CSV) == {"a": dict(zip(names, body, strict=True))}
    assert Name.compared < 5 * len(names)

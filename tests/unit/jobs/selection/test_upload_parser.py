"""Reading ids out of files: every byte, or an error that names the line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tracemalloc
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.jobs.selection.upload_parser import (
    LINES_PER_LOOK,
    MAX_BLANK_LINES,
    BadUpload,
    parse_ids,
)
from handlers.jobs.words.limits import MAX_ID_BYTES, MAX_LINE_BYTES
from handlers.jobs.words.text_rules import text_problem
from handlers.jobs.words.upload import Format, UploadForm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

JSONL: Final = UploadForm(format=Format.JSONL)
OBJECTS: Final = UploadForm(format=Format.JSONL, column="sku")
CSV: Final = UploadForm(format=Format.CSV, column="sku")
ROOM: Final = 10**9


def read(content: bytes | str, form: UploadForm, *, size: int = 7) -> list[str]:
    """size: of the blocks the file comes in."""
    data = content.encode() if isinstance(content, str) else content
    return list(parse_ids(blocks(data, size), form, max_bytes=ROOM))


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def zipped(form: UploadForm) -> UploadForm:
    return form.model_copy(update={"gzip": True})


# --- what is read -----------------------------------------------------------------------------

GOOD: list[tuple[str, UploadForm, Sequence[str]]] = [
    ("", JSONL, []),
    ("\n\n  \n", JSONL, []),
    ('"a"\n"b"', JSONL, ["a", "b"]),
    ('"a"\r\n\r\n  "b"  \r\n', JSONL, ["a", "b"]),
    ('\ufeff"a"\n', JSONL, ["a"]),
    ('"007"\n"07"\n"7"\n"1e5"\n" 7 "\n', JSONL, ["007", "07", "7", "1e5", " 7 "]),
    ('"a"\n"a"\n', JSONL, ["a", "a"]),
    ('"\\ud83d\\ude00"\n"😀"\n"e\u0301"\n"\u05d0"\n', JSONL, ["😀", "😀", "e\u0301", "\u05d0"]),
    ('"a\u2028b"\n"c\x1cd"\n'.replace("\x1c", "\u2029"), JSONL, ["a\u2028b", "c\u2029d"]),
    ('{"sku": "a", "n": 1.5e3}\n{"n": {"sku": 1}, "sku": "007"}\n', OBJECTS, ["a", "007"]),
    ("sku\n", CSV, []),
    ("sku\na\nb\n", CSV, ["a", "b"]),
    ("\ufeffsku,name\r\n007,x\r\n07,y\r\n7,z", CSV, ["007", "07", "7"]),
    ('name,sku\n"x, y",a\n"he said ""no""",b\n', CSV, ["a", "b"]),
    ('name,sku\n"two\nlines",a\n\n"x","b"\n', CSV, ["a", "b"]),
    ('sku\n" 7 "\n 7 \n1e5\n', CSV, [" 7 ", " 7 ", "1e5"]),
]


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize(("content", "form", "ids"), GOOD, ids=[str(n) for n in range(len(GOOD))])
def test_what_is_in_a_file(content: str, form: UploadForm, ids: Sequence[str], size: int) -> None:
    assert read(content, form, size=size) == ids
    assert read(gzip.compress(content.encode()), zipped(form), size=size) == ids


def test_gzip_members_follow_each_other() -> None:
    data = b"".join(gzip.compress(part) for part in (b'"a"\n"', b'b"\n', b"", b'"c"\n'))
    for size in (1, 10, len(data)):
        assert read(data, zipped(JSONL), size=size) == ["a", "b", "c"]


IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(
    lambda text: text_problem(text, MAX_ID_BYTES) is None
)


@given(st.lists(IDS, max_size=30), st.integers(1, 50))
def test_ids_come_back_exactly(ids: list[str], size: int) -> None:
    lines = "".join(json.dumps(id_, ensure_ascii=False) + "\n" for id_ in ids)
    assert read(lines, JSONL, size=size) == ids
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["name", "sku"])
    writer.writerows(["x", id_] for id_ in ids)
    assert read(table.getvalue(), CSV, size=size) == ids
    assert read(gzip.compress(table.getvalue().encode()), zipped(CSV), size=size) == ids


# --- what is refused --------------------------------------------------------------------------

BAD: list[tuple[bytes | str, UploadForm, int, str]] = [
    ('"a"\n7\n', JSONL, 2, "the number 7"),
    ('"a"\n007\n', JSONL, 2, "not JSON"),
    ('"a"\n1.50\n', JSONL, 2, "the number 1.50"),
    ("null\n", JSONL, 1, "null"),
    ("true\n", JSONL, 1, "a boolean"),
    ('["a"]\n', JSONL, 1, "a list"),
    ('{"id": "a"}\n', JSONL, 1, "'column'"),
    ('"a"\n""\n', JSONL, 2, "must not be empty"),
    ('"a"\n"b\\u0000"\n', JSONL, 2, "control"),
    ('"a"\n"b\\n"\n', JSONL, 2, "control"),
    ('"a"\n"\\ud800"\n', JSONL, 2, "surrogate"),
    ('"a" "b"\n', JSONL, 1, "not JSON"),
    ('"a"\n"b\n', JSONL, 2, "not JSON"),
    ("[" * 20_000 + "\n", JSONL, 1, "not JSON: nested deeper than 200 levels"),
    ("[" * 2000 + "]" * 2000 + "\n", JSONL, 1, "not JSON: nested deeper than 200 levels"),
    ("[1,]\n", JSONL, 1, "not JSON: trailing comma at line 1 column 4"),
    ("9" * 5000 + "\n", JSONL, 1, "the number 999"),
    (f'"{"x" * (MAX_ID_BYTES + 1)}"\n', JSONL, 1, "bytes as UTF-8"),
    (b'"a"\n"\xff"\n"b"\n', JSONL, 2, "UTF-8"),
    (b'"a"\n"\xc3"', JSONL, 2, "UTF-8"),
    ('"a"\n'.encode("utf-16"), JSONL, 1, "UTF-8"),
    ('"a"\n\ufeff"b"\n', JSONL, 2, "not JSON"),
    ('"a"\n', OBJECTS, 1, "a string"),
    ('{"sku": "a"}\n{"id": "b"}\n', OBJECTS, 2, "no field 'sku'"),
    ('{"sku": "a"}\n{"sku": 7}\n', OBJECTS, 2, "the number 7"),
    ('{"sku": "a", "sku": "b"}\n', OBJECTS, 1, "twice"),
    ("", CSV, 0, "no header"),
    ("\n\n", CSV, 0, "no header"),
    ("id,name\na,b\n", CSV, 1, "names no column 'sku'; there are: id, name"),
    ("SKU\na\n", CSV, 1, "names no column"),
    ("sku,sku\na,b\n", CSV, 1, "2 times"),
    ("sku,name\na,x\nb\n", CSV, 3, "1 fields"),
    ("sku,name\na,x,y\n", CSV, 2, "3 fields"),
    ("sku;name\na;x\n", CSV, 1, "names no column"),
    ("sku,name\n,x\n", CSV, 2, "must not be empty"),
    ('sku\n"a\n', CSV, 2, "not CSV"),
    ('sku\n"a"b\n', CSV, 2, "not CSV"),
    ('sku,name\n"x\ny",z\n', CSV, 3, "control"),
    ("sku\na\x00b\n", CSV, 2, "control"),
    ("sku\na\rb\n", CSV, 2, "not CSV"),
    (b"sku\n\xe9\n", CSV, 2, "UTF-8"),
]


@pytest.mark.parametrize("size", [1, 4096])
@pytest.mark.parametrize(
    ("content", "form", "line", "why"), BAD, ids=[str(n) for n in range(len(BAD))]
)
def test_what_is_no_id_is_named_by_its_line(
    content: bytes | str, form: UploadForm, line: int, why: str, size: int
) -> None:
    with pytest.raises(BadUpload) as caught:
        read(content, form, size=size)
    assert (caught.value.line, why in str(caught.value)) == (line, True), str(caught.value)


def test_ids_before_a_bad_line_are_not_held_back_and_none_come_after_it() -> None:
    found: list[str] = []
    with pytest.raises(BadUpload, match="line 3"):
        found.extend(parse_ids(iter([b'"a"\n"b"\n7\n"c"\n']), JSONL, max_bytes=ROOM))
    assert found == ["a", "b"]


DATA: Final = gzip.compress(b'"a"\n' * 1000, mtime=0)


@pytest.mark.parametrize("end", [1, 5, 11, len(DATA) // 2, len(DATA) - 9, len(DATA) - 1])
def test_half_a_gzip_file_is_refused(end: int) -> None:
    with pytest.raises(BadUpload, match="is cut short"):
        read(DATA[:end], zipped(JSONL))


@pytest.mark.parametrize(
    "data",
    [b'"a"\n', DATA + b"x", DATA + b'"b"\n' * 9, DATA[:-8] + bytes(8)],
    ids=["plain", "a byte more", "lines more", "another checksum"],
)
def test_what_is_not_gzip_is_refused(data: bytes) -> None:
    with pytest.raises(BadUpload, match="gzip"):
        read(data, zipped(JSONL), size=4096)


# --- bounds -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [JSONL, CSV, OBJECTS])
def test_a_line_without_an_end_is_refused_before_it_is_held(form: UploadForm) -> None:
    read_blocks = 0

    def endless() -> Iterator[bytes]:
        nonlocal read_blocks
        while True:
            read_blocks += 1
            yield b"x" * 65_536

    with pytest.raises(BadUpload, match="line 1: is longer"):
        list(parse_ids(endless(), form, max_bytes=10**12))
    assert read_blocks <= MAX_LINE_BYTES // 65_536 + 1


def test_a_quoted_field_without_an_end_is_refused_before_it_is_held() -> None:
    read_blocks = 0

    def endless() -> Iterator[bytes]:
        nonlocal read_blocks
        yield b'sku\n"'
        while True:
            read_blocks += 1
            yield b"x\n" * 32_768

    with pytest.raises(BadUpload, match=r"is longer|no field has more than"):
        list(parse_ids(endless(), CSV, max_bytes=10**12))
    assert read_blocks <= MAX_LINE_BYTES // 65_536 + 1


def test_the_longest_line_is_taken() -> None:
    filler = "x" * (MAX_LINE_BYTES - len('{"sku":"a","n":""}\n'))
    line = f'{{"sku":"a","n":"{filler}"}}\n'
    assert len(line) == MAX_LINE_BYTES
    assert read(line, OBJECTS, size=65_536) == ["a"]
    with pytest.raises(BadUpload, match="longer"):
        read(line.replace("x", "xx", 1), OBJECTS, size=65_536)


def test_a_file_is_bounded_by_what_it_expands_to() -> None:
    bomb = gzip.compress(b'"aaaaaaaaaaaaa"\n' * 2_000_000)
    form = zipped(JSONL)
    tracemalloc.start()
    try:
        with pytest.raises(BadUpload, match="larger than 1000000 bytes"):
            sum(1 for _ in parse_ids(iter([bomb]), form, max_bytes=1_000_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * 1024**2
    with pytest.raises(BadUpload, match="larger than 3 bytes"):
        list(parse_ids(iter([b'"a"\n']), JSONL, max_bytes=3))


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
@pytest.mark.parametrize("around", ["{}", '{{"id": {}}}', '{{"id": "a", "n": [{}]}}'])
def test_c98_a_constant_that_is_no_json_is_named(constant: str, around: str) -> None:
    column = "id" if "id" in around else None
    with pytest.raises(BadUpload) as caught:
        read(around.format(constant).encode(), UploadForm(format=Format.JSONL, column=column))
    assert str(caught.value) == f"line 1: is not JSON: {constant} is not a JSON number"


@pytest.mark.parametrize("after", [b"\0", b"\0" * 4096, b"\0\0\x1f\x8b", b"more", b"\x1f"])
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_c98_bytes_after_the_end_of_a_gzip_file_are_named(after: bytes, size: int) -> None:
    packed = gzip.compress(b'"a"\n')
    with pytest.raises(BadUpload) as caught:
        read(packed + after, zipped(JSONL), size=size)
    zeros = "zeros, as padding leaves them" if after[:1] == b"\0" else "bytes that are no gzip"
    assert str(caught.value) == (
        f"the gzip data ends after {len(packed)} bytes, and {zeros} follow: cut the file there"
    )


def test_c98_a_file_that_is_no_gzip_is_told_so() -> None:
    with pytest.raises(BadUpload) as caught:
        read(b'"a"\n"b"\n', zipped(JSONL))
    assert str(caught.value) == "the file is not gzip, though its upload says so"


@pytest.mark.parametrize("form", [JSONL, CSV], ids=["jsonl", "csv"])
def test_c105_a_reader_looks_around_however_few_ids_a_file_has(form: UploadForm) -> None:
    lines = MAX_BLANK_LINES
    head = b"sku\n" if form.format is Format.CSV else b'"a"\n'
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    packed = gzip.compress(head + b"\n" * lines)
    list(parse_ids([packed], zipped(form), max_bytes=ROOM, look=look))
    assert looks == lines // LINES_PER_LOOK


@pytest.mark.parametrize("form", [JSONL, CSV], ids=["jsonl", "csv"])
def test_c105_blank_lines_are_bounded(form: UploadForm) -> None:
    head = b"sku\n" if form.format is Format.CSV else b'"a"\n'
    few = head + b"\n" * MAX_BLANK_LINES
    list(parse_ids([few], form, max_bytes=ROOM))
    with pytest.raises(BadUpload) as caught:
        list(parse_ids([few, b" \n" if form is JSONL else b"\n"], form, max_bytes=ROOM))
    assert "blank lines" in str(caught.value)

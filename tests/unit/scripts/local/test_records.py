"""A file of records: what it may hold, and which lines of it are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.local.errors import LocalError
from scripts.local.records import ITEM_BYTES, LISTED, read


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def test_each_line_is_a_record(file: Path) -> None:
    file.write_text(
        '{"tenant": "acme", "id": "007", "name": "Zürich", "price": 1.50, "tags": ["a", {"b": 1}]}'
        "\n"
        "\n"
        '{"tenant": "acme", "id": "7", "version": 3, "open": true, "closed": null}\n',
        encoding="utf-8",
    )
    assert read(file) == [
        {
            "tenant": {"S": "acme"},
            "id": {"S": "007"},
            "name": {"S": "Zürich"},
            "price": {"N": "1.5"},
            "tags": {"L": [{"S": "a"}, {"M": {"b": {"N": "1"}}}]},
            "version": {"N": "1"},
        },
        {
            "tenant": {"S": "acme"},
            "id": {"S": "7"},
            "version": {"N": "3"},
            "open": {"BOOL": True},
            "closed": {"NULL": True},
        },
    ]


def test_a_file_without_records_has_none(file: Path) -> None:
    file.write_text("")
    assert read(file) == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"tenant": "a", "id": "1"', "not JSON: EOF while parsing an object at line 1 column 25"),
        (b"\xff", "not UTF-8"),
        (b'["a"]', "not a JSON object"),
        (b'{"id": "1"}', "tenant is missing"),
        (b'{"tenant": "a"}', "id is missing"),
        (b'{"tenant": "a", "id": 1}', "id must be a text that is not empty, and is 1"),
        (b'{"tenant": "", "id": "1"}', "tenant must be a text that is not empty, and is ''"),
        (b'{"tenant": "a", "id": "' + b"i" * 1025 + b'"}', "id has 1025 bytes, more than 1024"),
        (b'{"tenant": "a", "id": "1", "version": "2"}', "version must be a whole number"),
        (b'{"tenant": "a", "id": "1", "version": true}', "version must be a whole number"),
        (b'{"tenant": "a", "id": "1", "version": -1}', "version must be a whole number"),
        (b'{"tenant": "a", "id": "1", "x": NaN}', "NaN is not a JSON number"),
        (b'{"tenant": "a", "id": "1", "x": 1e200}', "outside 1E-130 to 9.9E+125"),
        (b'{"tenant": "a", "id": "\\ud800"}', "id is no Unicode text"),
        (
            b'{"tenant": "a", "id": "1", "x": "' + b"x" * ITEM_BYTES + b'"}',
            f"more than the {ITEM_BYTES} a record may have",
        ),
        (b'{"tenant": "first", "id": "1"}', "tenant and id are those of line 1"),
    ],
)
def test_a_line_that_is_no_record_is_named(file: Path, line: bytes, said: str) -> None:
    file.write_bytes(b'{"tenant": "first", "id": "1"}\n\n' + line + b"\n")
    with pytest.raises(LocalError) as refused:
        read(file)
    assert f"{file} is no file of records:\nline 3: " in str(refused.value)
    assert said in str(refused.value)


def test_of_many_bad_lines_the_first_are_named(file: Path) -> None:
    file.write_text("{}\n" * (LISTED + 3))
    with pytest.raises(LocalError) as refused:
        read(file)
    said = str(refused.value).splitlines()
    assert said[1:3] == ["line 1: tenant is missing", "line 2: tenant is missing"]
    assert said[-1] == "and 3 more"
    assert len(said) == LISTED + 2


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    with pytest.raises(LocalError, match=r"cannot be read.*records\.jsonl"):
        read(file)

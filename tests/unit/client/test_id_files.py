"""A file of ids means to the client what it means to the API once it is uploaded."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlane_client import NewUpload
from fairlane_client.idfiles import BadFile, bad_id, ids_of
from handlers.jobs.selection.upload_parser import BadUpload, parse_ids
from handlers.jobs.words.limits import MAX_ID_BYTES
from handlers.jobs.words.text_rules import text_problem
from handlers.jobs.words.upload import UploadForm

GOOD = {
    "jsonl": ['"a"\n"007"\n"a"', '\ufeff"a"\n\n  \n"b"\n', '"\\u00e4 b"\r\n"x"', ""],
    "jsonl of id": ['{"id": "a", "n": 1}\n{"n": 2.5, "id": "b"}', '{"id": "\\ud83d\\ude00"}'],
    "csv of id": [
        "id,n\na,1\nb,2\n",
        '\ufeffn,id\n1,"a ""b"", c"\n\n2,"two\nlines"\n'.replace("two\nlines", "one line"),
        "id\n007\n",
        "n,id\r\n1,a\r\n2,b",
    ],
}
BAD = {
    "jsonl": [
        '"a"\n7',
        '{"id": "a"}',
        "nul",
        "null",
        '""',
        '"a\\u0007"',
        '"\\ud800"',
        "[" * 99_999,
    ],
    "jsonl of id": ['{"n": 1}', '{"id": 7}', '"a"', '{"id": "a", "id": "b"}', "[]", '{"id": null}'],
    "csv of id": ["", "a,b\n1,2\n", "id,id\n1,2\n", "id,n\na\n", 'id\n"a" b\n', "id\n\x07\n"],
}


def form(named: str, *, zipped: bool) -> NewUpload:
    kind, _, column = named.partition(" of ")
    return NewUpload(format=kind, column=column or None, gzip=zipped)


def there(content: bytes, form_: NewUpload) -> list[str] | None:
    """What the API makes of it; None: it refuses the file."""
    try:
        same = UploadForm.model_validate(form_.model_dump())
        return list(parse_ids([content], same, max_bytes=10**9))
    except BadUpload:
        return None


def here(content: bytes, form_: NewUpload, path: Path) -> list[str] | None:
    path.write_bytes(content)
    try:
        return list(ids_of(path, form_))
    except BadFile:
        return None


CASES = [(named, text, True) for named, texts in GOOD.items() for text in texts]
CASES += [(named, text, False) for named, texts in BAD.items() for text in texts]


@pytest.mark.parametrize(("named", "text", "good"), CASES, ids=lambda part: repr(part)[:30])
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_both_read_the_same(
    tmp_path: Path, named: str, text: str, *, good: bool, zipped: bool
) -> None:
    content = text.encode(errors="surrogatepass")
    if zipped:
        content = gzip.compress(content[: len(content) // 2]) + gzip.compress(
            content[len(content) // 2 :]
        )
    form_ = form(named, zipped=zipped)
    found = here(content, form_, tmp_path / "ids")
    assert found == there(content, form_)
    assert (found is not None) == good


@pytest.mark.parametrize("content", [b"\xff", b'"a"\n\xff\n', b"id\n\xff\n"])
@pytest.mark.parametrize("named", GOOD)
def test_what_is_not_utf_8_is_refused_by_both(tmp_path: Path, content: bytes, named: str) -> None:
    form_ = form(named, zipped=False)
    assert here(content, form_, tmp_path / "ids") is there(content, form_) is None


@pytest.mark.parametrize("content", [b"no gzip", gzip.compress(b'"a"\n', mtime=0)[:-4]])
def test_a_broken_gzip_file_is_refused_by_both(tmp_path: Path, content: bytes) -> None:
    form_ = form("jsonl", zipped=True)
    assert here(content, form_, tmp_path / "ids") is there(content, form_) is None


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_an_id_is_good_for_both_or_for_none(text: str) -> None:
    assert bad_id(text) == text_problem(text, MAX_ID_BYTES)


@pytest.mark.parametrize("text", ["a" * 256, "a" * 257, "é" * 128, "é" * 129])
def test_the_length_of_an_id_is_the_same(text: str) -> None:
    assert bad_id(text) == text_problem(text, MAX_ID_BYTES)

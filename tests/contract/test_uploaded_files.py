"""Files that clients put there: seen as they are, and read only as they were."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.errors import UploadGone
from handlers.jobs.words.ports import Stored
from handlers.testing.uploads import MemoryUploadStore
from tests.support import aws

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.ports import UploadAddress, UploadStore

NAME: Final = "uploads/0123/abcd"
NOTES: Final = {"format": "csv", "column": "%C3%A9", "gzip": "no"}


@dataclass(frozen=True)
class Uploads:
    store: UploadStore
    send: Callable[[UploadAddress, bytes], None]
    drop: Callable[[str], object]


@pytest.fixture(params=["memory", "moto"])
def uploads(request: pytest.FixtureRequest) -> Iterator[Uploads]:
    if request.param == "memory":
        store = MemoryUploadStore()
        yield Uploads(store, store.send, store.drop)
        return
    with aws.moto() as made:
        yield Uploads(
            aws.upload_store(made, max_bytes=1000),
            lambda address, content: send(made, address, content),
            lambda name: made.s3.delete_object(Bucket=aws.BUCKET, Key=name),
        )


def policy_of(address: UploadAddress) -> dict[str, Any]:
    policy: dict[str, Any] = json.loads(base64.b64decode(address.fields["policy"]))
    return policy


def send(made: aws.Clients, address: UploadAddress, content: bytes) -> None:
    """What S3 does with the form, as far as moto can't: every field has to be in the policy."""
    known = {name for c in policy_of(address)["conditions"] if isinstance(c, dict) for name in c}
    fields = dict(address.fields)
    assert set(fields) <= known | {"policy", "x-amz-signature"}
    prefix = "x-amz-meta-"
    notes = {n.removeprefix(prefix): v for n, v in fields.items() if n.startswith(prefix)}
    made.s3.put_object(Bucket=aws.BUCKET, Key=fields["key"], Body=content, Metadata=notes)


def test_a_file_is_seen_with_its_size_and_notes(uploads: Uploads) -> None:
    assert uploads.store.look(NAME) is None
    uploads.send(uploads.store.address(NAME, NOTES, seconds=3600), b"0123456789")
    found = uploads.store.look(NAME)
    assert found is not None
    assert found == Stored(found.version, 10, NOTES)


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [(0, 100, b"0123456789"), (3, 4, b"3456"), (9, 5, b"9"), (10, 5, b""), (99, 5, b"")],
)
def test_a_file_is_read_in_ranges(
    uploads: Uploads, offset: int, length: int, expected: bytes
) -> None:
    uploads.send(uploads.store.address(NAME, NOTES, seconds=3600), b"0123456789")
    found = uploads.store.look(NAME)
    assert found is not None
    assert uploads.store.read(NAME, found.version, offset, length) == expected


def test_another_content_is_another_version_and_the_old_one_is_gone(uploads: Uploads) -> None:
    address = uploads.store.address(NAME, NOTES, seconds=3600)
    uploads.send(address, b"first")
    first = uploads.store.look(NAME)
    uploads.send(address, b"other")
    second = uploads.store.look(NAME)
    assert first is not None
    assert second is not None
    assert first.version != second.version
    with pytest.raises(UploadGone):
        uploads.store.read(NAME, first.version, 0, 5)
    assert uploads.store.read(NAME, second.version, 0, 5) == b"other"


def test_a_file_that_is_not_there_is_gone(uploads: Uploads) -> None:
    with pytest.raises(UploadGone):
        uploads.store.read(NAME, '"0"', 0, 5)
    uploads.send(uploads.store.address(NAME, NOTES, seconds=3600), b"first")
    found = uploads.store.look(NAME)
    assert found is not None
    uploads.drop(NAME)
    assert uploads.store.look(NAME) is None
    with pytest.raises(UploadGone):
        uploads.store.read(NAME, found.version, 0, 5)


def test_the_form_takes_one_name_these_notes_and_a_bounded_size() -> None:
    with aws.moto() as made:
        address = aws.upload_store(made, max_bytes=1000).address(NAME, NOTES, seconds=3600)
    conditions = policy_of(address)["conditions"]
    assert ["content-length-range", 1, 1000] in conditions
    assert {"key": NAME} in conditions
    assert {"bucket": aws.BUCKET} in conditions
    assert [{f"x-amz-meta-{name}": value} for name, value in NOTES.items()] == [
        c for c in conditions if isinstance(c, dict) and any("meta" in name for name in c)
    ]
    assert not [c for c in conditions if isinstance(c, list) and c[0] != "content-length-range"]
    # Version 2 signatures are refused by every region made since 2014.
    assert address.fields["x-amz-algorithm"] == "AWS4-HMAC-SHA256"
    assert address.fields["key"] == NAME

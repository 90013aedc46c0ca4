"""Records into the record table and out of it: a file has one JSON object in each line."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from handlers.aws.attributes import Attributes, decode, encode
from handlers.jobs.words.errors import FairlaneError
from handlers.jobs.words.exact_json import exact_json, exact_loads

from .errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import WriteRequestUnionTypeDef

BATCH: Final = 25
"""Items in one BatchWriteItem (DynamoDB)."""
THREADS: Final = 4
TRIES: Final = 8
FIRST_PAUSE_S: Final = 0.05
LISTED: Final = 10
"""Bad lines an error names."""
KEY_BYTES: Final = {"tenant": 2048, "id": 1024}
"""What a partition key and a sort key may have (DynamoDB)."""
ITEM_BYTES: Final = 400 * 1024
"""What an item may have (DynamoDB); the text of its line is a little more."""

Record: TypeAlias = dict[str, Any]
"""Attributes by name, among them tenant, id and version."""


class BadRecord(ValueError):
    """One line is no record."""


def read(path: Path) -> list[Attributes]:
    """The records of a file, as items: each with ``tenant`` and ``id``, and ``version`` 1 where it
    has none. Raises LocalError naming the lines that are no records."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise LocalError(f"the records cannot be read: {error}") from error
    items: list[Attributes] = []
    bad: list[str] = []
    seen: dict[tuple[str, str], int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = _record(line)
            first = seen.setdefault((record["tenant"], record["id"]), number)
            if first == number:
                items.append(encode(record))
            else:
                bad.append(f"line {number}: tenant and id are those of line {first}")
        except (BadRecord, FairlaneError, TypeError) as error:
            bad.append(f"line {number}: {error}")
    if bad:
        more = f"\nand {len(bad) - LISTED} more" if len(bad) > LISTED else ""
        raise LocalError(f"{path} is no file of records:\n" + "\n".join(bad[:LISTED]) + more)
    return items


def _record(line: bytes) -> Record:
    try:
        found = exact_loads(line.decode())
    except UnicodeDecodeError as error:
        raise BadRecord("not UTF-8") from error
    except json.JSONDecodeError as error:
        raise BadRecord(f"not JSON: {error.msg} at column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadRecord("not a JSON object")
    for name, most in KEY_BYTES.items():
        _check_key(name, found.get(name), most)
    version = found.setdefault("version", 1)
    if type(version) is not int or version < 0:
        raise BadRecord(f"version must be a whole number that is not negative, and is {version!r}")
    if len(line) > ITEM_BYTES:
        raise BadRecord(f"{len(line)} bytes, more than the {ITEM_BYTES} a record may have")
    return found


def _check_key(name: str, value: object, most: int) -> None:
    if value is None:
        raise BadRecord(f"{name} is missing")
    if not isinstance(value, str) or not value:
        raise BadRecord(f"{name} must be a text that is not empty, and is {value!r}")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise BadRecord(f"{name} is no Unicode text") from None
    if size > most:
        raise BadRecord(f"{name} has {size} bytes, more than {most}")


def load(
    dynamodb: DynamoDBClient,
    table: str,
    items: Sequence[Attributes],
    *,
    loaded: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the items in place of those there with the same keys; returns their number.
    ``loaded`` is told how many each batch held. Raises LocalError when the table goes on refusing
    some of them."""

    def write(batch: Sequence[WriteRequestUnionTypeDef]) -> int:
        _write(dynamodb, table, batch)
        loaded(len(batch))
        return len(batch)

    with ThreadPoolExecutor(THREADS) as pool:
        return sum(pool.map(write, _batches(items)))


def save(dynamodb: DynamoDBClient, table: str, path: Path) -> int:
    """Write every record of the table to a file that ``read`` takes, and return their number. The
    file is whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    count = 0
    with fresh.open("w", encoding="utf-8") as file:
        for item in scan(dynamodb, table):
            file.write(exact_json(item) + "\n")
            count += 1
    fresh.replace(path)
    return count


def scan(dynamodb: DynamoDBClient, table: str) -> Iterator[Mapping[str, Any]]:
    """Every item of the table."""
    for page in dynamodb.get_paginator("scan").paginate(TableName=table):
        yield from map(decode, page["Items"])


def _batches(items: Sequence[Attributes]) -> Iterator[Sequence[WriteRequestUnionTypeDef]]:
    for start in range(0, len(items), BATCH):
        yield [{"PutRequest": {"Item": item}} for item in items[start : start + BATCH]]


def _write(dynamodb: DynamoDBClient, table: str, batch: Sequence[WriteRequestUnionTypeDef]) -> None:
    for attempt in range(TRIES):
        answer = dynamodb.batch_write_item(RequestItems={table: batch})
        batch = answer["UnprocessedItems"].get(table, [])
        if not batch:
            return
        time.sleep(FIRST_PAUSE_S * 2**attempt)
    raise LocalError(f"the table {table} refused {len(batch)} records {TRIES} times: try again")

"""Jobs whose records end in all ways."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from tests.support import aws

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment


def mixed(stack: Deployment, good: int, missing: int, text: int) -> tuple[str, list[str]]:
    """A job whose end is: some changed, some without a record (skipped), some whose field is no
    number (failed). Returns its id and the failed ids."""
    ids = stack.fill(good + text)
    failed = ids[good:]
    for id_ in failed:
        stack.made.dynamodb.put_item(
            TableName=aws.RECORDS,
            Item={"tenant": {"S": "acme"}, "id": {"S": id_}, "price": {"S": 'much, "more"'}},
        )
    absent = [f"absent {n:03}" for n in range(missing)]
    # Interleaved, so that every chunk has some of each.
    asked = [id_ for _, id_ in sorted((hash_of(i), i) for i in [*ids, *absent])]
    id_ = stack.created(asked)
    stack.run(stack.job(id_).lane)
    return id_, failed


def hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()

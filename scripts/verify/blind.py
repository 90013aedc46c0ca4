"""A bulk worker for a control: it adds to one record after another without a condition, and leaves
trying again to the AWS library, as a loop would do it without Fairlane.

Not in a transaction: its requests have a token, by which DynamoDB knows the library's second try.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

from handlers import bulk_worker
from handlers.aws.job_store import DynamoStore
from handlers.jobs.words.writes import Table, Write

from .site import FIELD


def main() -> None:
    """Serve like the deployed worker, but for how a chunk is committed."""
    transact = DynamoStore.transact

    def blindly(store: DynamoStore, action: str, writes: Sequence[Write]) -> None:
        if action != "commit_chunk":
            transact(store, action, writes)
            return
        records = [write for write in writes if write.key.table is Table.RECORDS]
        for write in records:
            store._client.update_item(  # noqa: SLF001  the mistake is what is shown here
                **store._calls.place(write.key),  # noqa: SLF001
                UpdateExpression="ADD #field :one",
                ExpressionAttributeNames={"#field": FIELD},
                ExpressionAttributeValues={":one": {"N": "1"}},
            )
        transact(store, action, [write for write in writes if write not in records])

    with patch.object(DynamoStore, "transact", blindly):
        bulk_worker.main()


if __name__ == "__main__":
    main()

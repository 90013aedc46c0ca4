"""A bulk worker for a control: the loop as one would write it without Fairlane. It changes the
records of a chunk, and then notes how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from unittest.mock import patch

from handlers import bulk_worker
from handlers.aws.job_store import DynamoStore
from handlers.jobs.words.writes import Delete, Table, Update, Write

MARK: Final = "last_job_id"
"""What tells a record that this job has changed it already; this worker does not write it."""


def main() -> None:
    """Serve like the deployed worker, but for how a chunk is committed."""
    transact = DynamoStore.transact

    def carelessly(store: DynamoStore, action: str, writes: Sequence[Write]) -> None:
        if action != "commit_chunk":
            transact(store, action, writes)
            return
        records = [write for write in writes if write.key.table is Table.RECORDS]
        if records:
            transact(store, action, [_unmarked(write) for write in records])
        transact(store, action, [write for write in writes if write not in records])

    with patch.object(DynamoStore, "transact", carelessly):
        bulk_worker.main()


def _unmarked(write: Write) -> Write:
    if isinstance(write, Update):
        kept = {name: value for name, value in write.set.items() if name != MARK}
        return replace(write, set=kept, when=())
    return replace(write, when=()) if isinstance(write, Delete) else write


if __name__ == "__main__":
    main()

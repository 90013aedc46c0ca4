"""The notice of changed records, for sinks that are notified rather than kept in step: which
records, at which version, and whether they are gone. It has none of their fields: the record table
decides who may see those, and a notice can be late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..jobs.words.exact_json import exact_json

if TYPE_CHECKING:
    from ..jobs.words.effect import Batch


def notice(batch: Batch) -> str:
    """JSON of about 30 KB at most with ordinary ids, and under 200 KB with any."""
    return exact_json(
        {
            "key": batch.key,
            "job_id": batch.job_id,
            "position": batch.position,
            "tenant": batch.tenant,
            "operation": batch.operation,
            "records": [
                {"id": each.id, "version": each.version, "gone": each.record is None}
                for each in batch.records
            ],
        }
    )

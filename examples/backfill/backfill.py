"""Runs the migration, and then again over what a person has looked at.

    python backfill.py run ids.csv customers.csv    every invoice of the file
    python backfill.py commas JOB                   those that failed for a comma: a decimal one

FAIRLANE_URL and FAIRLANE_TOKEN name the API. Both may be started again at any time: what is split
is skipped.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections import Counter
from pathlib import Path

from fairlane_client import Client, JobView, NewJob, NewUpload

SUBJECT = "invoices"


def run(client: Client, ids: Path, customers: Path) -> JobView:
    """A job over every id of the file. Up to 5 % may fail: these are looked at afterwards.
    customers: a table that is too large for a request."""
    table = client.upload(customers, NewUpload(format="csv", column="customer"))
    job = NewJob(
        operation="split_total",
        subject=SUBJECT,
        params={"customers": {"upload_id": table}},
        upload_id=client.upload(ids, NewUpload(format="csv", column="invoice")),
        tolerated_failure_percent=5,
        labels={"migration": "split-total"},
    )
    return client.wait(client.submit(job, on_conflict="return_existing").id)


def commas(client: Client, job_id: str) -> JobView:
    """A job over those of an earlier job's records that failed for a comma."""
    ids = [each.id for each in client.items(job_id, "failed") if "comma" in each.reason]
    params = {"decimal_comma": True}
    job = NewJob(operation="split_total", subject=SUBJECT, ids=ids, params=params)
    # The same ids are the same job, however often this is sent.
    key = hashlib.sha256("\n".join(ids).encode()).hexdigest()
    return client.wait(client.submit(job, idempotency_key=key).id)


def said(client: Client, job: JobView) -> str:
    """What became of the records, with the reasons that there are."""
    failed = client.items(job.id, "failed") if job.failed else ()
    reasons = Counter(each.reason.partition(":")[0] for each in failed)
    told = "".join(f"\n  {count} {reason}" for reason, count in reasons.most_common())
    counts = f"{job.succeeded} split, {job.skipped} skipped, {job.failed} failed"
    return f"{job.id} {job.state}: {counts}{told}"


def main(what: str, over: str, customers: str = "") -> None:
    with Client(os.environ["FAIRLANE_URL"], lambda: os.environ["FAIRLANE_TOKEN"]) as client:
        job = run(client, Path(over), Path(customers)) if what == "run" else commas(client, over)
        print(said(client, job))  # noqa: T201  printing is what it is for


if __name__ == "__main__":
    main(*sys.argv[1:])

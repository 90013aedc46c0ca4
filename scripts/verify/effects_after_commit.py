"""Nothing happens outside before its chunk is committed, and everything after it, whoever is killed
in between. The control calls the index inside the transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from handlers.effects.documents import document, document_id
from handlers.jobs.words.job import Lane
from handlers.jobs.words.operation import Record
from handlers.jobs.words.states import State
from scripts.load.ledger import JobRow

from .effects_place import CHUNK, FIELD, INDEX, RECORDS, SCHEMA, TENANT, Place, place, put
from .framework import Bench, Expectation, Scenario
from .outside import HELD_S, Point, Stop

# --- Fairlane ----------------------------------------------------------------------------------


def run(bench: Bench) -> Iterator[Expectation]:
    with place(bench, "effects") as here:
        yield from _fills_the_index(bench, here)
        here.watch()
        here.receiver.keys.clear()
        # A job for each kill: the next one's first chunk makes the request that is stopped, however
        # much of this one a fast worker has committed by then.
        jobs: list[JobRow] = []
        for killed in (_before_the_effect, _after_the_effect, _after_the_webhook):
            yield from killed(bench, here, jobs)
        yield from _agrees(here, jobs)


def _fills_the_index(bench: Bench, here: Place) -> Iterator[Expectation]:
    with bench.steps.step("Reindexing records that have no documents"):
        here.stack.workers.start()
        before = here.drift()
        here.ended(here.submit("reindex", {}))
        after = here.drift()
    yield Expectation.equal(
        "differences of index and table before and after a reindex job",
        expected=(RECORDS, 0),
        saw=(before, after),
    )


def _before_the_effect(bench: Bench, here: Place, jobs: list[JobRow]) -> Iterator[Expectation]:
    stop = here.gate.stop_next(Point.BEFORE)
    with bench.steps.step("Killing a worker between a commit and its effect"):
        job_id = _killed_at(here, stop)
        sent = here.sent(stop)
        index, table = here.versions(sent), here.versions_in_table(sent)
        rows, committed = here.effect_rows(job_id), here.job(job_id).position
    new = _version(jobs)
    yield Expectation.of(
        "killed after the commit, before the effect: versions in table and index",
        expected=f"{new} and {new - 1}, with an effect row, and the chunk committed",
        saw=f"{table} and {index}, {rows} rows, {committed} records committed",
        ok=table == {new} and index == {new - 1} and rows >= 1 and committed >= CHUNK,
    )
    jobs.append(_finished(bench, here, job_id, stop))


def _after_the_effect(bench: Bench, here: Place, jobs: list[JobRow]) -> Iterator[Expectation]:
    stop = here.gate.stop_next(Point.AFTER)
    with bench.steps.step("Killing a worker between an effect and its record"):
        job_id = _killed_at(here, stop)
        index, rows = here.versions(here.sent(stop)), here.effect_rows(job_id)
    new = _version(jobs)
    yield Expectation.of(
        "killed after an effect, before that is noted: versions in the index, and effect rows",
        expected=f"{new}, and at least 1 row",
        saw=f"{index}, {rows} rows",
        ok=index == {new} and rows >= 1,
    )
    jobs.append(_finished(bench, here, job_id, stop))


def _after_the_webhook(bench: Bench, here: Place, jobs: list[JobRow]) -> Iterator[Expectation]:
    stop = here.receiver.stop_next()
    with bench.steps.step("Killing a worker that has sent a webhook"):
        job_id = _killed_at(here, stop)
        rows = here.effect_rows(job_id)
    yield Expectation.of(
        "killed after a webhook, before that is noted: effect rows",
        expected="at least 1",
        saw=rows,
        ok=rows >= 1,
    )
    jobs.append(_finished(bench, here, job_id, stop))


def _version(before: Sequence[JobRow]) -> int:
    """What the next job makes of a record: 1 at first, and one more by each job."""
    return len(before) + 2


def _killed_at(here: Place, stop: Stop) -> str:
    """Submit a job and kill its worker at the stop; before anything is looked at, so that nothing
    goes on meanwhile. Returns the job's id."""
    job_id = here.submit("adjust_number", {"field": FIELD, "add": 1})
    stop.wait()
    for worker in here.stack.workers.running:
        worker.kill()
        worker.wait(HELD_S)
    return job_id


def _finished(bench: Bench, here: Place, job_id: str, stop: Stop) -> JobRow:
    """Let another worker finish the job."""
    stop.go_on.set()
    with bench.steps.step("Letting another worker finish"):
        here.stack.workers.start()
        return here.ended(job_id)


def _agrees(here: Place, jobs: Sequence[JobRow]) -> Iterator[Expectation]:
    records = here.read().values()
    yield Expectation.equal(
        "the jobs, and records not changed once by each of them",
        expected=([(State.SUCCEEDED.value, RECORDS)] * len(jobs), 0),
        saw=(
            [(job.state.value, job.succeeded) for job in jobs],
            sum((r.fields[FIELD], r.version) != (len(jobs), 1 + len(jobs)) for r in records),
        ),
    )
    yield Expectation.equal(
        "documents sent before the table had them", expected=0, saw=len(here.early)
    )
    yield Expectation.equal(
        "differences of index and table, and effect rows left",
        expected=(0, 0),
        saw=(here.drift(), sum(here.effect_rows(job.id) for job in jobs)),
    )
    expected = {f"{job.id}:{position}" for job in jobs for position in range(0, RECORDS, CHUNK)}
    keys, deliveries = set(here.receiver.keys), here.receiver.keys.total()
    yield Expectation.of(
        "keys the webhook got",
        expected=f"{len(expected)}: one for each chunk, in more deliveries",
        saw=f"{len(keys)} in {deliveries} deliveries",
        ok=keys == expected and deliveries > len(expected),
    )
    yield Expectation.equal(
        "messages left in the bulk queue", expected=0, saw=here.ledger.messages(Lane.BULK)
    )


# --- the control -------------------------------------------------------------------------------


def control(bench: Bench) -> Iterator[Expectation]:
    """The index is called inside the transaction, whose commit then fails on one record that
    somebody changed meanwhile; and a message whose work failed is deleted."""
    with place(bench, "effects-control") as here:
        ids = here.ids[:CHUNK]
        _index(here, here.records.read(TENANT, ids).values())
        before = len(list(here.sides.now(ids)))
        with bench.steps.step("One transaction around table and index"):
            queue, sqs = here.ledger.settings.bulk_queue_url, here.stack.clients.sqs
            sqs.send_message(QueueUrl=queue, MessageBody=json.dumps(ids))
            [message] = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
            committed = _all_in_one(here, json.loads(message["Body"]))
            sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
            here.recover()
        table = {record.fields[FIELD] for record in here.records.read(TENANT, ids[1:]).values()}
        yield Expectation.equal(
            "committed, and numbers in the table", expected=(False, {0}), saw=(committed, table)
        )
        yield Expectation.equal(
            "versions in the index, of a change that never was",
            expected={2},
            saw=here.versions(ids),
        )
        yield Expectation.equal(
            "wrong documents before and after, and messages that would mend them",
            expected=(0, CHUNK, 0),
            saw=(before, len(list(here.sides.now(ids))), here.ledger.messages(Lane.BULK)),
        )


def _all_in_one(here: Place, ids: Sequence[str]) -> bool:
    """What many a worker does; returns whether the table took it."""
    dynamodb, table = here.stack.clients.dynamodb, here.ledger.settings.records_table
    records = here.records.read(TENANT, ids)
    _index(
        here,
        [
            replace(record, version=record.version + 1, fields={FIELD: 1})
            for record in records.values()
        ],
    )
    put(here, ids[0], version=5)  # by somebody else, at the wrong moment
    try:
        dynamodb.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": table,
                        "Key": {"tenant": {"S": TENANT}, "id": {"S": id_}},
                        "UpdateExpression": "SET #n = :one, version = :next",
                        "ConditionExpression": "version = :read",
                        "ExpressionAttributeNames": {"#n": FIELD},
                        "ExpressionAttributeValues": {
                            ":one": {"N": "1"},
                            ":read": {"N": str(records[id_].version)},
                            ":next": {"N": str(records[id_].version + 1)},
                        },
                    }
                }
                for id_ in ids
            ]
        )
    except dynamodb.exceptions.TransactionCanceledException:
        return False
    return True


def _index(here: Place, records: Iterable[Record]) -> None:
    lines: list[str] = []
    for record in records:
        lines.append(json.dumps({"index": {"_id": document_id(TENANT, record.id)}}))
        lines.append(document(SCHEMA, record, {}))
    here.engine.bulk(body="\n".join(lines) + "\n", index=INDEX)


SCENARIO: Final = Scenario(
    "effects-after-commit",
    "Nothing is outside before its commit, everything is after it, whoever is killed in between.",
    run,
    control,
)

"""An operation with a lookup table, as a team's own would be, and a table of a size worth one."""

from __future__ import annotations

import json
from typing import Final

from handlers.jobs.selection.request import Accepted, accept, parse
from handlers.jobs.selection.resolve import offer_upload
from handlers.jobs.words.operation import Change, Fail, Fields, Operation, Outcome
from handlers.jobs.words.table import Table
from handlers.jobs.words.upload import Format, UploadForm
from handlers.operations.parameters import Parameters
from handlers.testing.world import MemoryWorld

from .jobs import TENANT

MANY: Final = 2000
FORM: Final = UploadForm(format=Format.JSONL, column="sku")
PARAMS_BYTES: Final = 64 * 1024


class Priced(Parameters):
    prices: Table


def apply(record: Fields, parameters: Priced) -> Outcome:
    row = parameters.prices.get(str(record.get("sku")))
    return Fail("no such sku") if row is None else Change({"price": row["price"]})


PRICED: Final = Operation("priced", Priced, apply, lambda _: frozenset({"price"}))
"""The price of a record is that of its ``sku`` in the table."""


def price_list(more: int = 0) -> bytes:
    """JSON Lines, longer than parameters may be. more: is added to each price."""
    rows = ({"sku": f"sku-{n:05}", "price": n + more, "note": "x" * 20} for n in range(MANY))
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert len(content) > PARAMS_BYTES
    return content


def upload(world: MemoryWorld, content: bytes, form: UploadForm = FORM, to: str = TENANT) -> str:
    """The id of an upload with this content; ``to`` is the tenant."""
    offer = offer_upload(world, to, form)
    world.uploads.send(offer.address, content)
    return offer.upload_id


def wanted(world: MemoryWorld, upload_id: str, ids: int, subject: str = "s") -> Accepted:
    """A request for so many records, with that table."""
    body = {
        "operation": "priced",
        "subject": subject,
        "params": {"prices": {"upload_id": upload_id}},
        "ids": [f"r{n}" for n in range(ids)],
    }
    return accept(parse(json.dumps(body)), world.operations, max_ids=1000)

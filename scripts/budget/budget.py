"""The table: each layer's limit, what the largest allowed request takes there, and how many ids
would fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from handlers.jobs.selection.id_sources import lines
from handlers.jobs.words.limits import (
    INLINE_ID_BYTES,
    MAX_BODY_BYTES,
    MAX_PARAMS_BYTES,
    MAX_SUBJECT_BYTES,
    Layer,
    Limits,
    body_bytes,
    layers,
)

from .event import event_bytes
from .made import create

_as_json: Final = json.JSONEncoder(ensure_ascii=False).encode


class Row(BaseModel):
    """One layer. Bytes."""

    model_config = ConfigDict(frozen=True)

    layer: str
    limit: int
    used: int | None
    """None: the layer does not refuse this request, however large it is."""
    ids_fit: int | None
    """None: what is measured there does not grow with the ids."""
    of: str
    source: str

    @property
    def ok(self) -> bool:
        return self.used is None or self.used <= self.limit


class Budget(BaseModel):
    """What was built and measured."""

    model_config = ConfigDict(frozen=True)

    max_ids: int
    """In the largest request that is accepted; one more is 413."""
    id_bytes: float
    """Of one of its ids in the body, without quotes; the mean."""
    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows)


def budget(ids: Iterable[str], *, limits: Limits, inspected: int) -> Budget:
    """Build the largest request of these ids, and measure it everywhere.

    ids: endless. inspected: bytes of a body the web ACL looks at. Raises BadRequest for an id that
    no request may hold.
    """
    chosen = largest(ids, limits)
    table = layers(
        inspected=inspected,
        inline_bytes=INLINE_ID_BYTES,
        upload_bytes=limits.max_upload_bytes,
    )
    measured = _measured(chosen, limits)
    return Budget(
        max_ids=len(chosen),
        id_bytes=round(sum(map(_cost, chosen)) / max(len(chosen), 1), 2),
        rows=tuple(_row(layer, chosen, *measured[layer.name]) for layer in table),
    )


def request_of(ids: Sequence[str]) -> dict[str, Any]:
    """A small request around the ids."""
    return {
        "operation": "adjust_number",
        "subject": "products",
        "params": {"field": "price", "add": "1.00"},
        "ids": list(ids),
    }


def body_of(ids: Sequence[str]) -> str:
    """As a client sends it: compact JSON, in UTF-8."""
    return json.dumps(request_of(ids), ensure_ascii=False, separators=(",", ":"))


def largest(ids: Iterable[str], limits: Limits) -> list[str]:
    """As many ids as the largest request that is accepted holds, taken one by one."""
    used = body_bytes(body_of([]))
    chosen: list[str] = []
    for id_ in ids:
        used += _cost(id_) + len('"",' if chosen else '""')
        if used > MAX_BODY_BYTES or len(chosen) == limits.max_inline_ids:
            return chosen
        chosen.append(id_)
    raise ValueError("the ids have to be endless")


def _cost(id_: str) -> int:
    return body_bytes(_as_json(id_)) - len('""')


# --- measuring --------------------------------------------------------------------------------

Measure = Callable[[Sequence[str]], int]


def _measured(ids: Sequence[str], limits: Limits) -> dict[str, tuple[int | None, Measure | None]]:
    """Bytes of the largest request in each layer, and how the same is measured for other ids."""
    body = _body(ids)
    kept = _kept(ids)
    made = [create(content, limits) for content in (request_of(ids), request_of(kept), _full(kept))]
    return {
        "waf_body_rule": (None, _body),
        "waf_inspection": (None, _body),
        "waf_jobs_limit": (body, _body),
        "api_gateway": (body, _body),
        "lambda_event": (_event(ids), _event),
        "body": (body, _body),
        "inline_ids": (_inline(kept), _inline),
        "job_item": (max(one.item for one in made), None),
        "transaction": (max(one.transaction for one in made), None),
        "queue_message": (max(one.message for one in made), None),
        "upload": (_file(ids), _file),
    }


def _body(ids: Sequence[str]) -> int:
    return body_bytes(body_of(ids))


def _event(ids: Sequence[str]) -> int:
    return event_bytes(body_of(ids))


def _inline(ids: Sequence[str]) -> int:
    return sum(len(id_.encode()) + 3 for id_ in ids)


def _file(ids: Sequence[str]) -> int:
    return sum(map(len, lines(ids)))


def _kept(ids: Sequence[str]) -> list[str]:
    """As many as a job item keeps."""
    kept: list[str] = []
    used = 0
    for id_ in dict.fromkeys(ids):
        used += _inline([id_])
        if used > INLINE_ID_BYTES:
            break
        kept.append(id_)
    return kept


def _full(kept: Sequence[str]) -> dict[str, Any]:
    """With everything that a job item keeps beside ids at its limit, too."""
    room = MAX_PARAMS_BYTES - len('{"fields":{"f":""}}')
    name = "x" * (MAX_SUBJECT_BYTES - 1)
    return {
        "operation": "set_fields",
        "subject": "x" * MAX_SUBJECT_BYTES,
        "params": {"fields": {"f": "x" * room}},
        "ids": list(kept),
        "labels": {f"{name}{n}": f"{name}{n}" for n in range(10)},
    }


def _row(layer: Layer, ids: Sequence[str], used: int | None, measure: Measure | None) -> Row:
    return Row(
        layer=layer.name,
        limit=layer.limit,
        used=used,
        ids_fit=None if measure is None or not ids else _fitting(layer.limit, ids, measure),
        of=layer.of,
        source=layer.source,
    )


def _fitting(limit: int, ids: Sequence[str], measure: Measure) -> int:
    """How many ids like these fit into the limit: what one takes is known from all of them."""
    one, all_ = measure(ids[:1]), measure(ids)
    if one > limit or all_ == one:
        return 0
    return 1 + (limit - one) * (len(ids) - 1) // (all_ - one)

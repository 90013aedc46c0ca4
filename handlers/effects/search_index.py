"""The search index: OpenSearch documents that follow the records.

Every document carries its record's version as an external version, so that of two writes the newer
record wins, in whatever order they arrive, and writing the same version twice is one success
(``external_gte``). A deletion carries the version of the removal, and the index remembers it for a
minute. A record that was deleted and made again begins at a low version and would lose against its
own past: see ``Batch.instead_of``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from opensearchpy.exceptions import ConnectionError as NotReached
from opensearchpy.exceptions import OpenSearchException, TransportError

from ..aws.search_mapping import CheckedIndex
from ..jobs.words.effect import Delivered
from ..jobs.words.errors import Transient
from ..jobs.words.limits import MAX_REASON
from .documents import document, document_id, existence
from .retry_after import retry_after_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from opensearchpy import OpenSearch

    from ..aws.search_mapping import SearchFields
    from ..jobs.words.effect import Batch, Projection
    from ..jobs.words.ports import Runtime
    from ..jobs.words.record_schema import RecordSchema

MAX_BODY: Final = 5 * 1024**2
"""Bytes of one bulk request; the smallest domains on AWS take 10 MB."""
MAX_VERSION: Final = 2**63 - 1
VERSIONED: Final = "external_gte"

RETRY_AFTER: Final = "retry_after"
"""The key of the error's info under which ``search_client`` puts a refused request's header."""

FOR_GOOD: Final = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_ENTITY_TOO_LARGE})
"""Refusals of one document. Every other one speaks of the index, the permissions or the moment,
and is sent again: an operator or time can mend that."""
NOT_THE_RECORDS: Final = frozenset(
    {
        "cluster_block_exception",
        "index_closed_exception",
        "index_not_found_exception",
        "security_exception",
    }
)
"""Errors that speak of the index, whatever their status."""


@dataclass(frozen=True)
class SearchIndex:
    """``Sink`` over an index or alias."""

    client: OpenSearch
    index: str
    schema: RecordSchema
    runtime: Runtime
    fields: SearchFields
    """See ``EffectSettings.search_fields``."""

    @cached_property
    def _checked(self) -> CheckedIndex:
        return CheckedIndex(self.client, self.index, self.schema, self.runtime, self.fields)

    def deliver(self, batch: Batch) -> Delivered:
        result = _Result()
        actions = [a for each in batch.records if (a := self._action(batch, each, result))]
        for group in _groups(actions):
            self._send(group, result)
        newer = self._held(batch.tenant, result) if result.newer else {}
        return Delivered(again=frozenset(result.again), refused=result.refused, newer=newer)

    def _action(self, batch: Batch, sent: Projection, result: _Result) -> _Action | None:
        """The action for one record; None when nothing has to be sent, or can be."""
        target = {"_id": document_id(batch.tenant, sent.id)}
        if sent.id in batch.instead_of:
            held = batch.instead_of[sent.id]
            if sent.record is None and held is None:
                return None
            verb = "delete" if sent.record is None else "index" if held else "create"
            how: object = held or {}
        elif 0 <= sent.version <= MAX_VERSION:
            verb = "delete" if sent.record is None else "index"
            how = {"version": sent.version, "version_type": VERSIONED}
        else:
            result.refused[sent.id] = "its version is not a whole number that an index can order by"
            return None
        lines = [json.dumps({verb: {**target, **_options(how)}})]
        if sent.record is not None:
            try:
                lines.append(document(self.schema, sent.record, self.fields))
            except TypeError as error:
                result.refused[sent.id] = str(error)
                return None
        return _Action(sent.id, "".join(f"{line}\n" for line in lines).encode())

    def _send(self, actions: Sequence[_Action], result: _Result) -> None:
        body = b"".join(action.lines for action in actions)
        params = self._ask(self._checked.options)
        # The index is in the path, so that permissions can name it.
        answer = self._ask(lambda: self.client.bulk(body=body, index=self.index, params=params))
        for action, item in zip(actions, answer["items"], strict=True):
            [(verb, said)] = item.items()
            result.take(action.record_id, verb, said)

    def _held(self, tenant: str, result: _Result) -> Mapping[str, object]:
        """By id, how to write over the document that the index holds now, and over nothing newer;
        None: it holds no document, but remembers the version of a deleted one. A record of whose
        document the index could not tell is sent again."""
        wanted = [document_id(tenant, id_) for id_ in result.newer]
        answer = self._ask(
            lambda: self.client.mget(
                body={"ids": wanted}, index=self.index, params={"_source": "false"}
            )
        )
        held: dict[str, object] = {}
        for id_, doc in zip(result.newer, answer["docs"], strict=True):
            match existence(doc):
                case True:
                    at = {"if_seq_no": doc["_seq_no"], "if_primary_term": doc["_primary_term"]}
                    held[id_] = at
                case False:
                    held[id_] = None
                case None:
                    result.again.add(id_)
        return held

    def _ask(self, call: Any) -> Any:
        """Raises Transient for whatever goes wrong with a whole request: none of it is a record's
        fault."""
        try:
            return call()
        except TransportError as error:
            raise Transient(_error_text(error), retry_after_ms=self._asked(error)) from error
        except OpenSearchException as error:
            raise Transient(str(error)) from error

    def _asked(self, error: TransportError) -> int | None:
        info = None if isinstance(error, NotReached) else error.info
        asked = info.get(RETRY_AFTER) if isinstance(info, dict) else None
        return retry_after_ms(asked, self.runtime.now())


@dataclass(frozen=True)
class _Action:
    record_id: str
    lines: bytes


@dataclass
class _Result:
    again: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    newer: list[str] = field(default_factory=list)

    def take(self, record_id: str, verb: str, said: Mapping[str, Any]) -> None:
        """Take one item's own answer; the whole request was answered 200 in any case."""
        status, error = int(said["status"]), said.get("error") or {}
        absent = verb == "delete" and status == HTTPStatus.NOT_FOUND and not error
        if status < HTTPStatus.BAD_REQUEST or absent:
            return
        if status == HTTPStatus.CONFLICT:
            self.newer.append(record_id)
        elif status in FOR_GOOD and error.get("type") not in NOT_THE_RECORDS:
            self.refused[record_id] = _reason(status, error)
        else:
            self.again.add(record_id)


def _options(how: object) -> dict[str, Any]:
    return how if isinstance(how, dict) else {}


def _reason(status: int, error: Mapping[str, Any]) -> str:
    cause = (error.get("caused_by") or {}).get("reason")
    parts = [str(error.get("type") or status), str(error.get("reason") or ""), str(cause or "")]
    return ": ".join(part for part in parts if part)[:MAX_REASON]


def _error_text(error: TransportError) -> str:
    return f"{error.status_code}: {error.error}"[:MAX_REASON]


def _groups(actions: Sequence[_Action]) -> Iterator[Sequence[_Action]]:
    """In order, in requests of a size that every domain takes."""
    group: list[_Action] = []
    size = 0
    for action in actions:
        if group and size + len(action.lines) > MAX_BODY:
            yield group
            group, size = [], 0
        group.append(action)
        size += len(action.lines)
    if group:
        yield group

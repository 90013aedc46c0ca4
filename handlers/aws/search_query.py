"""Queries over the search index: candidates in the order of a field that never changes, then of
the record id.

The index may be behind the table, holds numbers as doubles and can't tell an empty list from
nothing, so what it finds is checked again when the record is read. An index that is not one of
records with the declared fields could miss some, so it is not asked. Its cursor is sent back in the
very text in which it came: a placeholder for a missing value lies at the edge of 64 bits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from opensearchpy.exceptions import ConnectionError as NotReached
from opensearchpy.exceptions import OpenSearchException, TransportError
from opensearchpy.serializer import JSONSerializer

from ..jobs.words.errors import Denied, QueryRefused, Transient
from ..jobs.words.exact_json import exact_json
from ..jobs.words.filters import (
    Comparison,
    Equality,
    Existence,
    Membership,
    Prefix,
    not_searchable,
)
from ..jobs.words.limits import MAX_REASON
from ..jobs.words.ports import Count, Match, Matches
from .search_mapping import UNINDEXED, CheckedIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opensearchpy import OpenSearch

    from ..jobs.words.filters import AnyCondition, Filter
    from ..jobs.words.ports import Runtime
    from ..jobs.words.record_schema import RecordSchema
    from .search_mapping import SearchFields

WHOLE: Final = {"allow_partial_search_results": "false"}
"""A shard that does not answer is an error, not fewer records."""


class RawNumber(str):
    """A JSON number with a fraction or exponent, as it was written."""

    __slots__ = ()


class RawNumbers(JSONSerializer):
    """Reads numbers in a way that writes them back unchanged. The client has to be made with it."""

    def loads(self, s: str) -> Any:
        return json.loads(s, parse_float=RawNumber)


@dataclass(frozen=True)
class SearchQuery:
    """``RecordQuery`` on an index or alias of documents that follow the records.

    client: reads with ``RawNumbers``. order_field: of the documents, never changed after a record
    was made; None: the order of the record ids alone.
    """

    client: OpenSearch
    index: str
    schema: RecordSchema
    runtime: Runtime
    fields: SearchFields
    """With which the documents were made (``EffectSettings.search_fields``)."""
    order_field: str | None = None

    @cached_property
    def _checked(self) -> CheckedIndex:
        return CheckedIndex(self.client, self.index, self.schema, self.runtime, self.fields)

    @property
    def sorts(self) -> frozenset[str]:
        return frozenset({self.schema.id} | ({self.order_field} if self.order_field else set()))

    @property
    def searchable(self) -> frozenset[str]:
        return frozenset(self.fields)

    def page(self, tenant: str, filter_: Filter, cursor: str | None, limit: int) -> Matches:
        after = "" if cursor is None else f',"search_after":{cursor}'
        query = exact_json(self._query(tenant, filter_))
        body = (
            f'{{"query":{query},"sort":{json.dumps(self._sort())},"size":{limit},'
            f'"_source":false,"track_total_hits":false{after}}}'
        )
        answer = self._ask(
            lambda: self.client.search(body=body, index=self.index, params={**WHOLE})
        )
        found = [Match(_id(hit["sort"]), _raw_json(hit["sort"])) for hit in answer["hits"]["hits"]]
        return Matches(found, found[-1].cursor if len(found) == limit else None)

    def count(self, tenant: str, filter_: Filter, at_most: int) -> Count:
        body = exact_json({"query": self._query(tenant, filter_)})
        # Counted in each shard: a smaller count proves that all were counted.
        params = {"terminate_after": at_most + 1}
        answer = self._ask(lambda: self.client.count(body=body, index=self.index, params=params))
        number = int(answer["count"])
        return Count(min(number, at_most), exact=number <= at_most)

    def _sort(self) -> list[Any]:
        by_id = {self.schema.id: {"order": "asc"}}
        if self.order_field is None:
            return [by_id]
        first = {"order": "asc", "missing": "_last", "unmapped_type": "long"}
        return [{self.order_field: first}, by_id]

    def _query(self, tenant: str, filter_: Filter) -> dict[str, Any]:
        must: list[Any] = [
            {"term": {self.schema.tenant: tenant}},
            # Any other document in the index is no record.
            {"exists": {"field": self.schema.id}},
        ]
        must_not: list[Any] = []
        for condition in filter_.all:
            _add_typed(condition, self.fields, must, must_not)
        return {"bool": {"filter": must, "must_not": must_not}}

    def _ask(self, call: Callable[[], Any]) -> Any:
        try:
            if problem := self._checked.reading_problem():
                raise QueryRefused(f"a query would miss records: {problem}")
            answer = call()
        except NotReached as error:
            raise Transient(f"the search index: {error.error}"[:MAX_REASON]) from error
        except TransportError as error:
            raise self._meaning(error) from error
        except OpenSearchException as error:
            raise Transient(str(error)[:MAX_REASON]) from error
        if answer.get("timed_out") or answer["_shards"]["failed"]:
            raise Transient("the search index answered in part")
        return answer

    def _meaning(self, error: TransportError) -> Exception:
        reason = f"{error.error}: {_reason(error.info)}"[:MAX_REASON]
        match error.status_code:
            case HTTPStatus.BAD_REQUEST:
                return QueryRefused(f"the search index does not take the query: {reason}")
            case HTTPStatus.NOT_FOUND:
                return QueryRefused(f"there is no search index {self.index!r}")
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                return Denied(f"the search index does not let this role in: {reason}")
            case HTTPStatus.TOO_MANY_REQUESTS:
                return Transient(reason)
            case int(status) if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                return Transient(reason)
            case _:
                return error


def _add(condition: AnyCondition, must: list[Any], must_not: list[Any]) -> None:
    """Add the condition as the index can express it: it finds at least what the filter selects, as
    far as that is indexed."""
    field = condition.field
    match condition:
        case Equality(op="eq", value=value):
            must.append({"term": {field: {"value": value}}})
        case Equality(value=value):
            must_not.append({"term": {field: {"value": value}}})
        case Membership(value=values):
            must.append({"terms": {field: values}})
        case Prefix(value=value):
            must.append({"prefix": {field: {"value": value}}})
        case Existence(value=wanted):
            (must if wanted else must_not).append({"exists": {"field": field}})
        case Comparison(op=op, value=value):
            must.append({"range": {field: {_bound(op, value): value}}})


def _add_typed(
    condition: AnyCondition, fields: SearchFields, must: list[Any], must_not: list[Any]
) -> None:
    """As ``_add``, over declared fields. A document whose value of the field is not indexed is
    found as well. Raises QueryRefused for another field."""
    field = condition.field
    if problem := not_searchable({field}, frozenset(fields)):
        raise QueryRefused(problem)
    unindexed = {"term": {UNINDEXED: {"value": field}}}
    native: list[Any] = []
    opposite: list[Any] = []
    if (fitting := _fitting(condition, fields[field])) is not None:
        _add(fitting, native, opposite)
    must_not += opposite
    if isinstance(condition, Existence) and not condition.value:
        must_not.append(unindexed)
    elif not (isinstance(condition, Equality) and condition.op == "ne"):
        must.append({"bool": {"should": [*native, unindexed], "minimum_should_match": 1}})


def _fitting(condition: AnyCondition, kind: str) -> AnyCondition | None:
    """The condition with the values that a field of this type can hold; None when it can hold none
    of them."""
    match condition:
        case Existence():
            return condition
        case Membership(value=values):
            left = [each for each in values if _kind_of(each) == kind]
            return condition.model_copy(update={"value": left}) if left else None
        case _:
            return condition if _kind_of(condition.value) == kind else None


def _kind_of(value: object) -> str:
    return "boolean" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


def _bound(op: str, value: object) -> str:
    """A double may stand for a number on either side of the bound, so the bound itself counts."""
    number = isinstance(value, int | Decimal)
    return {"gt": "gte", "lt": "lte"}.get(op, op) if number else op


def _id(sort: list[Any]) -> str:
    record_id = sort[-1]
    if isinstance(record_id, RawNumber) or not isinstance(record_id, str):
        raise QueryRefused("the index does not hold record ids as keywords")
    return record_id


def _raw_json(sort: list[Any]) -> str:
    parts = (part if isinstance(part, RawNumber) else json.dumps(part) for part in sort)
    return f"[{','.join(parts)}]"


def _reason(info: object) -> str:
    """The first reason in an error's JSON, which names the field."""
    error = info.get("error") if isinstance(info, dict) else None
    causes: Any = error.get("root_cause") if isinstance(error, dict) else None
    first: Mapping[str, Any] = causes[0] if isinstance(causes, list) and causes else {}
    return str(first.get("reason", ""))

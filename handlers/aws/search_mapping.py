"""The mapping of the search index, and the check that an index has it.

OpenSearch makes a missing index at the first write and guesses a mapping, with which no query finds
anything. So the mapping is checked before each write; through an alias, the write itself refuses to
make an index (``require_alias``). All tenants share an index, so it takes no field that was not
declared: no record changes what the index accepts or finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from opensearchpy.exceptions import NotFoundError

from ..jobs.words.errors import Transient

SearchFields: TypeAlias = Mapping[str, str]
"""By the name of a searchable field, a key of ``TYPES``."""

if TYPE_CHECKING:
    from opensearchpy import OpenSearch

    from ..jobs.words.ports import Runtime
    from ..jobs.words.record_schema import RecordSchema

TRUSTED: Final = 60_000
"""ms for which the check of an alias is trusted, and any check for a query."""
FIRST: Final = "000001"
"""What the name of an alias's first index ends in."""
UNINDEXED: Final = "fairlane_unindexed"
"""Where a document names the searchable fields whose value the index cannot hold as it should. Each
query finds such a document, and the record decides."""
TYPES: Final[Mapping[str, str]] = {"text": "keyword", "number": "double", "boolean": "boolean"}
HELP: Final = "fairlane index create makes one"


class WrongIndex(Transient):
    """The search index is missing, or its mapping is not that of records; an operator mends it."""


def index_body(schema: RecordSchema, fields: SearchFields) -> dict[str, Any]:
    """The mappings of an index: what finds, filters and sorts documents as the record table does.
    Text is matched whole, and every number has room for decimals. fields: see
    ``EffectSettings.search_fields``; no document changes such a mapping."""
    properties = {name: {"type": kind} for name, kind in _types(schema, fields).items()}
    return {"mappings": {"properties": properties, "dynamic": False, "date_detection": False}}


def mapping_problem(
    client: OpenSearch, index: str, schema: RecordSchema, fields: SearchFields
) -> str | None:
    """Why records cannot be written to the index or alias; None when they can. Raises
    OpenSearchException."""
    return _problem(index, _mappings(client, index), schema, fields)


def create_index(
    client: OpenSearch, index: str, schema: RecordSchema, fields: SearchFields
) -> bool:
    """Make an index of records behind an alias of this name; false when there is one. Raises
    WrongIndex for one of another kind, OpenSearchException."""
    if found := _mappings(client, index):
        if problem := _problem(index, found, schema, fields):
            raise WrongIndex(problem)
        return False
    body = {**index_body(schema, fields), "aliases": {index: {}}}
    client.indices.create(index=f"{index}-{FIRST}", body=body)
    return True


@dataclass
class CheckedIndex:
    """An index or alias that is looked at before it is used."""

    client: OpenSearch
    index: str
    schema: RecordSchema
    runtime: Runtime
    fields: SearchFields
    _alias_until: int = field(default=0, init=False)
    _read_until: int = field(default=0, init=False)

    def options(self) -> Mapping[str, str]:
        """The parameters of a request that writes, once the mapping is right. Raises WrongIndex,
        OpenSearchException."""
        if self.runtime.now() >= self._alias_until:
            found = _mappings(self.client, self.index)
            if problem := _problem(self.index, found, self.schema, self.fields):
                raise WrongIndex(problem)
            if self.index in found:
                return {}
            self._alias_until = self.runtime.now() + TRUSTED
        return {"require_alias": "true"}

    def reading_problem(self) -> str | None:
        """Why a query of the index cannot be trusted; None when it can. Raises
        OpenSearchException."""
        if self.runtime.now() < self._read_until:
            return None
        problem = mapping_problem(self.client, self.index, self.schema, self.fields)
        if problem is None:
            self._read_until = self.runtime.now() + TRUSTED
        return problem


def _types(schema: RecordSchema, fields: SearchFields) -> Mapping[str, str]:
    """The type of each field that an index of records maps."""
    always = {schema.tenant: "keyword", schema.id: "keyword", schema.version: "long"}
    return {**{name: TYPES[kind] for name, kind in fields.items()}, UNINDEXED: "keyword", **always}


def _mappings(client: OpenSearch, index: str) -> Mapping[str, Any]:
    """By the name of each index behind the name, its mapping; empty when there is none."""
    try:
        found: Mapping[str, Any] = client.indices.get_mapping(index=index)
    except NotFoundError:
        return {}
    return found


def _problem(
    index: str, found: Mapping[str, Any], schema: RecordSchema, fields: SearchFields
) -> str | None:
    if not found:
        return f"there is no search index {index!r}: {HELP}"
    for name, said in found.items():
        properties = said["mappings"].get("properties", {})
        for field_, kind in _types(schema, fields).items():
            has = properties.get(field_, {}).get("type")
            if has != kind:
                wrong = f"it maps {field_!r} as {has or 'nothing'} instead of {kind}"
                return f"the search index {name!r} is not one of records: {wrong}"
        if str(said["mappings"].get("dynamic")).lower() != "false":
            return f"the search index {name!r} takes fields that are not in search_fields: {HELP}"
    return None

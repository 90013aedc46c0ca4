"""What OpenSearch does with versioned writes, in memory and on a test's clock.

Checked against the embedded engine and the real node by ``tests/contract/test_search_index.py`` and
the scenario ``effects-after-commit``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from .search import Reply, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from handlers.testing.runtime import ManualRuntime

REMEMBERED: Final = 60_000
"""ms for which the version of a deleted document is remembered (index.gc_deletes)."""
TERM: Final = 1


@dataclass
class _Held:
    version: int
    seq_no: int
    source: Any
    """None: deleted."""
    at: int


@dataclass
class Engine:
    """One index. Used as the ``answer`` of a ``Transport``."""

    runtime: ManualRuntime
    held: dict[str, _Held] = field(default_factory=dict)
    writes: int = 0

    def __call__(self, request: Request) -> Reply:
        if request.path.endswith("/_bulk"):
            items = [{verb: self._write(verb, o, doc)} for verb, o, doc in request.actions()]
            return Reply({"items": items})
        assert "/_mget" in request.path
        return Reply({"docs": [self._get(id_) for id_ in json.loads(request.body)["ids"]]})

    def documents(self) -> dict[str, Any]:
        """What a search finds, by document id."""
        return {id_: held.source for id_, held in self.held.items() if held.source is not None}

    def _get(self, id_: str) -> dict[str, Any]:
        held = self._known(id_)
        if held is None or held.source is None:
            return {"_id": id_, "found": False}
        return {"_id": id_, "found": True, "_seq_no": held.seq_no, "_primary_term": TERM}

    def _known(self, id_: str) -> _Held | None:
        held = self.held.get(id_)
        now = self.runtime.now()
        if held is not None and held.source is None and now - held.at >= REMEMBERED:
            del self.held[id_]
            return None
        return held

    def _write(self, verb: str, options: Mapping[str, Any], document: Any) -> dict[str, Any]:
        id_ = options["_id"]
        held = self._known(id_)
        version = _allowed(verb, options, held)
        if version is None:
            kind = "version_conflict_engine_exception"
            return {"_id": id_, "status": 409, "error": {"type": kind, "reason": "conflict"}}
        live = held is not None and held.source is not None
        self.writes += 1
        self.held[id_] = _Held(version, self.writes, document, self.runtime.now())
        if verb == "delete":
            return {"_id": id_, "status": 200 if live else 404, "_version": version}
        return {"_id": id_, "status": 200 if live else 201, "_version": version}


def _allowed(verb: str, options: Mapping[str, Any], held: _Held | None) -> int | None:
    """The version the document has after the write; None is a conflict."""
    if "version" in options:
        assert options["version_type"] == "external_gte"
        asked = int(options["version"])
        return None if held is not None and asked < held.version else asked
    live = held is not None and held.source is not None
    if verb == "create" and live:
        return None
    if "if_seq_no" in options:
        at = (options["if_seq_no"], options["if_primary_term"])
        if held is None or not live or at != (held.seq_no, TERM):
            return None
    return 1 if held is None else held.version + 1

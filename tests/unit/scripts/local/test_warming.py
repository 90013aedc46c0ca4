"""One process of each function is started, or each that work may need."""

from __future__ import annotations

import threading
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.local.errors import LocalError
from scripts.local.warming import API_CALLS, warm


class Functions:
    """Those of a stack whose small lane may have three at once; counts what they are asked."""

    def __init__(self, *, status: int = 200, said: bytes = b"{}", **answer: object) -> None:
        self.asked: Counter[str] = Counter()
        self._status = status
        self._said = said
        self._answer = answer
        self._lock = threading.Lock()

    @property
    def lambda_(self) -> Functions:
        return self

    def list_event_source_mappings(self) -> dict[str, Any]:
        small = {"FunctionArn": "small", "ScalingConfig": {"MaximumConcurrency": 3}}
        return {"EventSourceMappings": [small, {"FunctionArn": "stream"}]}

    def invoke(self, **named: str) -> dict[str, object]:
        with self._lock:
            self.asked[named["FunctionName"]] += 1
        return {**self._answer, "Payload": SimpleNamespace(read=lambda: self._said)}

    def call(self, *_: str, **__: object) -> SimpleNamespace:
        with self._lock:
            self.asked["api"] += 1
        return SimpleNamespace(status=self._status, body={})


@pytest.mark.parametrize(
    ("every", "expected"),
    [
        (False, {"small": 1, "stream": 1, "api": 1}),
        (True, {"small": 3, "stream": 1, "api": API_CALLS}),
    ],
)
def test_one_of_each_or_every_one(every: object, expected: dict[str, int]) -> None:
    functions: Any = Functions()
    warm(functions, functions, every=bool(every))
    assert functions.asked == expected


def test_a_function_that_does_not_run_is_an_error() -> None:
    functions: Any = Functions(FunctionError="Unhandled", said=b"no module")
    with pytest.raises(LocalError, match="the function small does not run: no module"):
        warm(functions, functions, every=False)


def test_an_api_that_refuses_is_an_error() -> None:
    functions: Any = Functions(status=500)
    with pytest.raises(LocalError, match="GET /v1/jobs answers 500"):
        warm(functions, functions, every=False)

"""The program that runs ministack, with corrections of its database; ``enforcing`` and
``requested`` have others.

ministack 1.5.33 answers everything from one thread, so what a bulk chunk's transaction costs is
what every small job waits at the database. Behaviour is the same with and without them (``ahead``
names an exception, which AWS refuses):

- A long transaction is overtaken by short requests until its one step: ``ahead``.
- Items are copied by ``copied``: attribute values are trees of plain JSON, for which the general
  ``copy.deepcopy`` is five times slower. It took 40 % of a transaction.
- What depends on the text of an expression or a number alone is worked out once per text.
- The whole request of every transaction is kept for ten minutes, to compare it with a later one
  that has the same token: half a megabyte each. A digest of the request answers the same question.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import inspect
import json
import os
from collections.abc import Callable, Mapping
from functools import lru_cache, wraps
from importlib.metadata import version
from types import ModuleType, SimpleNamespace
from typing import Any, Final, TypeAlias

import urllib3
from ministack import app  # type: ignore[import-untyped]  # it has no types
from ministack.services import dynamodb  # type: ignore[import-untyped]  # it has no types

from . import enforcing, requested
from .ahead import Handler, known_ahead, of_the_same_request, overtaken
from .errors import LocalError
from .ministack import DATABASE_URL, ONE_BY_ONE

CORRECTED: Final = "1.5.33"
"""The version of ministack these corrections were written and checked for."""
REMEMBERED: Final = 4096
"""Texts whose answer is kept, for each function."""

Function: TypeAlias = Callable[..., Any]


class Digest:
    """Equal to every request with the same content."""

    def __init__(self, request: object) -> None:
        self._value = _digest(request)

    def __eq__(self, other: object) -> bool:
        return self._value == _digest(other)

    def __hash__(self) -> int:
        return hash(self._value)


def _digest(request: object) -> bytes:
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).digest()


def copied(value: Any) -> Any:
    """A deep copy. It differs from that of ``copy.deepcopy`` only where parts of the value are
    one and the same object, which in a tree of JSON they are not."""
    kind = type(value)
    if kind is dict:
        copy_of = value.copy()
        for name, inner in value.items():
            if type(inner) is not str:
                copy_of[name] = copied(inner)
        return copy_of
    if kind is list:
        return [inner if type(inner) is str else copied(inner) for inner in value]
    if value is None or kind in (str, bool, int, float):
        return value
    return copy.deepcopy(value)


def once(function: Function) -> Function:
    """The function, which is called once for each text (or texts) it is given."""
    remembered = lru_cache(REMEMBERED)(function)

    @wraps(function)
    def asked(*arguments: Any) -> Any:
        # Malformed requests have something else in a text's place.
        known = all(type(argument) is str for argument in arguments)
        return (remembered if known else function)(*arguments)

    return asked


def _tokens_once(tokenize: Function) -> Function:
    remembered = once(tokenize)
    # A list of the caller's own: what one does to its tokens must not reach the next.
    return lambda expr: list(remembered(expr))


def _digests(keep: Function) -> Function:
    def keep_digest(token: str, entry: dict[str, Any]) -> None:
        keep(token, {**entry, "signature": Digest(entry["signature"])})

    return keep_digest


CORRECTIONS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Function], Function]]]] = {
    "_tokenize": (("expr",), _tokens_once),
    "_condition_syntax_error": (("expr", "slot"), once),
    "_number_error": (("text",), once),
    "_number_size_bytes": (("text",), once),
    "_txn_token_store": (("crt", "entry"), _digests),
    "_transact_write_items": (("data",), of_the_same_request),
    "_transact_write_action_error": (("op_type", "op"), known_ahead(1)),
    "_evaluate_condition": (
        ("expr", "item", "attr_values", "attr_names", "slot"),
        known_ahead(2),
    ),
    "_apply_update_expression": (
        ("item", "expr", "attr_values", "attr_names", "updated_attrs"),
        known_ahead(2),
    ),
    "_item_size_bytes": (("item",), known_ahead(0)),
}
"""Functions of ministack's database: their parameters, and what is made of each."""
NAMES: Final = ("copy", "handle_request", *CORRECTIONS)
"""What is corrected."""


def correct(module: ModuleType, *, one_by_one: bool = False) -> None:
    """Correct ministack's database module. one_by_one: no request overtakes another. Raises
    LocalError when it is not the one these corrections are for: one that no longer fits must not
    go unnoticed."""
    _check(module)
    vars(module)["copy"] = SimpleNamespace(deepcopy=copied)
    if not one_by_one:
        vars(module)["handle_request"] = overtaken(module)
    for name, (_, corrected) in CORRECTIONS.items():
        setattr(module, name, corrected(getattr(module, name)))


def _check(module: ModuleType) -> None:
    installed = version("ministack")
    if installed != CORRECTED:
        raise LocalError(
            f"ministack {installed} is installed, and scripts/local/emulator.py corrects "
            f"{CORRECTED}. See whether each correction is still needed and fits (the tests of the "
            "emulator compare the two), then change CORRECTED"
        )
    if unknown := [name for name in NAMES if not _fits(module, name)]:
        raise LocalError(
            f"ministack's database has no {', '.join(unknown)} as scripts/local/emulator.py "
            "corrects it, or is corrected already"
        )


def _fits(module: ModuleType, name: str) -> bool:
    found = getattr(module, name, None)
    if name == "copy":
        return found is copy
    if name == "handle_request":
        return inspect.iscoroutinefunction(found)
    parameters, _ = CORRECTIONS[name]
    return inspect.isfunction(found) and tuple(inspect.signature(found).parameters) == parameters


DECLARED: Final = frozenset({"DescribeTable", "ListTables"})
"""What is asked of the tables that CloudFormation made: ``tables`` makes them in the database."""


def forwarding(own: Handler, database: str) -> Handler:
    """A handler of requests to the database in this process, which is empty: they go on to the one
    at this address. So that a client that knows only one address finds what is stored."""
    pool = urllib3.PoolManager(maxsize=8)

    async def handle(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> tuple[int, dict[str, str], bytes]:
        if headers.get("x-amz-target", "").rpartition(".")[2] in DECLARED:
            return await own(method, path, headers, body, query)
        kept: dict[str, str] = {n: headers[n] for n in FORWARDED if n in headers}
        answer = await asyncio.to_thread(
            pool.request, method, database + path, body=body, headers=kept, retries=False
        )
        return answer.status, dict(answer.headers), answer.data

    return handle


FORWARDED: Final = ("authorization", "content-type", "x-amz-date", "x-amz-target")


def main() -> None:
    correct(dynamodb, one_by_one=ONE_BY_ONE in os.environ)
    if database := os.environ.get(DATABASE_URL):
        app.SERVICE_HANDLERS["dynamodb"] = forwarding(app.SERVICE_HANDLERS["dynamodb"], database)
    requested.tell()
    if app.AUTH:
        enforcing.enforce()
    app.main()

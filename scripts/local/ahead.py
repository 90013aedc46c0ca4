"""Short requests overtake a bulk chunk's transaction at the local AWS's database.

ministack works on a request in one step, and answers nobody else during the step of a transaction
with 96 updates. On AWS, requests for other items do not wait for it. Most of the step goes into
functions that change nothing and whose answer depends on their arguments alone. Here they are
called before the step, and other requests are answered in between. In its step the transaction
finds the answers; where another request has changed an item meanwhile, the arguments are others,
and the function is called again. So a transaction is as atomic as without this: its conditions and
its writes are one step.

One answer differs. Where an update sets an attribute to a value of the request and changes a part
of it in one (``SET m = :m ADD m.x :one``), ministack changes the request's value at each
evaluation, so the result depends on how often it evaluates. AWS refuses such an update.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import wraps
from types import ModuleType
from typing import Any, Final, TypeAlias

Function: TypeAlias = Callable[..., Any]
Request: TypeAlias = dict[str, Any]
Answer: TypeAlias = tuple[int, dict[str, str], bytes]
Handler: TypeAlias = Callable[[str, str, dict[str, str], bytes, dict[str, Any]], Awaitable[Answer]]

TRANSACTION: Final = "DynamoDB_20120810.TransactWriteItems"
LONG = 25
"""Actions. A transaction with fewer, such as all of a small job, is not worth the turns."""
LONGEST: Final = 100
"""ministack refuses a transaction with more actions before it looks at any."""
AT_ONCE = 8
"""Actions that are worked on before other requests have their turns: about a millisecond."""
TURNS = 5
"""Of the event loop: a request that has just come needs some until it is read, and answered."""


class Ahead:
    """A transaction's request, and the answers of functions that its step will call."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._known: dict[tuple[Function, int], tuple[tuple[Any, ...], Any]] = {}

    def answer(self, function: Function, part: int, arguments: tuple[Any, ...]) -> Any:
        """The function's answer: the one it gave before, when the arguments are equal.
        part: the argument that is one and the same object whenever an action asks this."""
        place = (function, id(arguments[part]))
        asked, answer = self._known.get(place, (None, None))
        if asked != arguments:
            answer = function(*arguments)
            # Arguments that are kept stay alive, so no other object can have the id of one.
            self._known[place] = (arguments, answer)
        return answer


_AHEAD: Final[ContextVar[Ahead | None]] = ContextVar("_AHEAD", default=None)
"""Of the long transaction that is being answered."""


def known_ahead(part: int) -> Callable[[Function], Function]:
    """A correction of a function that changes nothing, and whose answer is not changed either.
    part: see ``Ahead.answer``."""

    def corrected(function: Function) -> Function:
        @wraps(function)
        def ask(*arguments: Any, **named: Any) -> Any:
            ahead = _AHEAD.get()
            if ahead is None or named:
                return function(*arguments, **named)
            return ahead.answer(function, part, arguments)

        return ask

    return corrected


def of_the_same_request(transact: Function) -> Function:
    """A correction of the step: it gets the very objects that the answers belong to."""

    @wraps(transact)
    def step(data: Request) -> Any:
        ahead = _AHEAD.get()
        return transact(data if ahead is None else ahead.request)

    return step


def overtaken(module: ModuleType) -> Handler:
    """ministack's handler of database requests, with turns for others in a long transaction."""
    own: Handler = module.handle_request

    async def handle_request(
        method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
    ) -> Answer:
        request = _long_transaction(headers, body)
        if request is None:
            return await own(method, path, headers, body, query)
        token = _AHEAD.set(Ahead(request))
        try:
            await _work_ahead(module, request["TransactItems"])
            return await own(method, path, headers, body, query)
        finally:
            _AHEAD.reset(token)

    return handle_request


def _long_transaction(headers: dict[str, str], body: bytes) -> Request | None:
    if headers.get("x-amz-target") != TRANSACTION:
        return None
    with suppress(ValueError, TypeError, KeyError):
        request: Request = json.loads(body)
        if LONG <= len(request["TransactItems"]) <= LONGEST:
            return request
    return None


async def _work_ahead(module: ModuleType, actions: Sequence[Request]) -> None:
    its = vars(module)
    for number, action in enumerate(actions, 1):
        # What can't be worked on ahead is refused in the step.
        with suppress(Exception):
            kind, call = its["_extract_transact_op"](action)
            if its["_transact_write_action_error"](kind, call) is not None:
                return  # the transaction is refused, whatever its other actions are
            if kind != "Put":
                _evaluate(its, call)
        if number % AT_ONCE == 0:
            for _ in range(TURNS):
                await asyncio.sleep(0)


def _evaluate(its: dict[str, Any], call: Request) -> None:
    """The condition and the update, of the item as it is now."""
    if (table := its["_tables"].get(call["TableName"])) is None:
        return
    # No copy: a stored item is replaced, and never changed in place.
    item = its["_get_item_by_key"](table, call["Key"]) or {}
    values = call.get("ExpressionAttributeValues", {})
    names = call.get("ExpressionAttributeNames", {})
    if condition := call.get("ConditionExpression"):
        its["_evaluate_condition"](condition, item, values, names)
    if update := call.get("UpdateExpression"):
        changed, _ = its["_apply_update_expression"](item or call["Key"], update, values, names)
        its["_item_size_bytes"](changed)

"""The names an operation is written with. They stay as they are within a major version.

An operation is a pure function of one record's fields and the job's parameters::

    from fairlane.operations import Change, Fields, Number, Outcome, Parameters, operation


    class Raise(Parameters):
        percent: Number


    @operation("raise_price", Raise, writes=lambda parameters: frozenset({"price"}))
    def raise_price(record: Fields, parameters: Raise) -> Outcome:
        \"\"\"Raise every price by some percent.\"\"\"
        ...

It returns what becomes of the record: ``Change`` (these fields, None removes one), ``Remove`` (the
record), ``Skip`` (nothing to do) or ``Fail`` (not possible); ``Touch`` changes nothing and has the
sinks hear of the record again. An exception is that record's failure and no other's: its type and
text are the reason, which the job's client reads among the items, so write it for the client and
put no secret into it. The function may be called again for a record whose chunk was not committed.

Numbers are ``int`` or ``Decimal``, never ``float``, and have up to 38 digits. ``EXACT`` is a
context that calculates without rounding; ``number`` gives the form in which a number is stored, and
raises ``BadValue`` for one that no record can hold. A model that extends ``Parameters`` refuses
unknown names; ``StrictInt``, ``StrictBool`` and ``StrictStr`` take no other type for theirs.
``Table`` is a lookup table from an uploaded file: rows, by the text in their key's column.
"""

from __future__ import annotations

from pydantic import StrictBool, StrictInt, StrictStr

from handlers.jobs.words.operation import (
    Change,
    Fail,
    Fields,
    Operation,
    Outcome,
    Remove,
    Skip,
    Touch,
)
from handlers.jobs.words.stored_values import BadValue, number
from handlers.jobs.words.table import Table
from handlers.jobs.words.writes import Value
from handlers.operations.decimals import EXACT, round_half_even
from handlers.operations.parameters import FieldName, FieldValue, Number, Parameters
from handlers.operations.registry import EVENT_BUS_SINK, SEARCH_INDEX, WEBHOOK, operation

__all__ = [
    "EVENT_BUS_SINK",
    "EXACT",
    "SEARCH_INDEX",
    "WEBHOOK",
    "BadValue",
    "Change",
    "Fail",
    "FieldName",
    "FieldValue",
    "Fields",
    "Number",
    "Operation",
    "Outcome",
    "Parameters",
    "Remove",
    "Skip",
    "StrictBool",
    "StrictInt",
    "StrictStr",
    "Table",
    "Touch",
    "Value",
    "number",
    "operation",
    "round_half_even",
]

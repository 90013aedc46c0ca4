"""What jobs do: one file each. A module in this package that decorates a function with
``@operation`` is found by itself; nothing else has to be edited."""

from __future__ import annotations

from .parameters import FieldName, FieldValue, Number, Parameters
from .registry import all_operations, operation

__all__ = ["FieldName", "FieldValue", "Number", "Parameters", "all_operations", "operation"]

"""Corrections of what moto's answers cost.

moto 5.2 registers more than a thousand answers for the ``requests`` library each time that it
starts; the SDK, which alone is used here, is answered without them. And for each member of each
answer it derives the names that an object may have for it. Those of a plain dict depend on the
member alone, so they are derived once.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Final

from moto.core import models
from moto.core.serialize import DEFAULT_ALIAS_PROVIDERS, XFormedAttributePicker

if TYPE_CHECKING:
    from collections.abc import Iterable

    from moto.core.model import Shape
    from moto.core.serialize import AttributePickerContext

_NAMES: Final[dict[tuple[Shape, str], tuple[str, ...]]] = {}


def correct() -> None:
    """Correct moto, in this process, once."""
    models.RESPONSES_METHODS.clear()
    possible = XFormedAttributePicker.get_possible_keys
    if hasattr(possible, "__wrapped__"):
        return

    @wraps(possible)
    def names(self: XFormedAttributePicker, context: AttributePickerContext) -> Iterable[str]:
        if type(context.obj) is not dict or self.alias_providers is not DEFAULT_ALIAS_PROVIDERS:
            return possible(self, context)
        member = (context.shape, context.key)
        if member not in _NAMES:
            _NAMES[member] = tuple(possible(self, context))
        return _NAMES[member]

    XFormedAttributePicker.get_possible_keys = names  # type: ignore[method-assign,assignment]

"""Page tokens: where a list goes on, good for that list of that tenant only.

Opaque to clients. What a token says is not secret, and changing it leads nowhere but to another
place of the same list; the digest tells a token of another list, or a broken one.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import TYPE_CHECKING

from .problems import bad_request

if TYPE_CHECKING:
    from collections.abc import Sequence

Place = list["str | int | None"]


def token(list_: Sequence[str], place: Place) -> str:
    """list_: tenant, route and filters; the same for every page of a list."""
    text = json.dumps([_digest(list_, place), *place], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def place_of(list_: Sequence[str], text: str) -> Place:
    """The place in a token. Raises Problem."""
    try:
        content = json.loads(base64.b64decode(text, altchars=b"-_", validate=True))
        digest: str
        place: Place
        digest, *place = content
        good = digest == _digest(list_, place)
    except (binascii.Error, ValueError, TypeError, RecursionError) as error:
        raise bad_request("page", "is not a token of this API") from error
    if not good:
        raise bad_request("page", "is not a token of this list")
    return place


def _digest(list_: Sequence[str], place: Place) -> str:
    text = json.dumps([list(list_), place])
    return hashlib.sha256(b"fairlane-page:" + text.encode()).hexdigest()[:16]

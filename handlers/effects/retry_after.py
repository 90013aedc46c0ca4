"""The wait that a server asks for by a Retry-After."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime
from typing import Final

_SECONDS: Final = re.compile(r"[0-9]{1,9}")


def retry_after_ms(value: str | None, now: int) -> int | None:
    """How long a Retry-After asks to wait (RFC 9110: seconds, or a date), at least 0; None when
    it says nothing usable. now: epoch ms."""
    if value is None:
        return None
    text = value.strip()
    if _SECONDS.fullmatch(text):
        return int(text) * 1000
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0, round(at.timestamp() * 1000) - now) if at.tzinfo else None

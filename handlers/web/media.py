"""What kinds of bodies the API takes: JSON in UTF-8, not compressed."""

from __future__ import annotations

import base64
import re
from email.message import Message
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from .problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON_TYPE: Final = re.compile(r"application/([a-z0-9.!#$&^_-]+\+)?json", re.IGNORECASE)
CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii"})
GZIP: Final = b"\x1f"
"""How compressed data begins; no JSON text does."""


def body_text(headers: Mapping[str, str], body: str, *, is_base64: bool) -> str:
    """The body as text. Raises Problem: 415 for one that is said to be something else or is
    compressed, 400 for one that is not UTF-8. A body of no stated type is taken for JSON.

    headers: without regard to case, such as Powertools'. body, is_base64: of the proxy event.
    """
    coding = headers.get("Content-Encoding") or "identity"
    if coding.strip().lower() != "identity":
        raise _compressed(f"the body has the Content-Encoding {coding[:50]}")
    if body and (stated := headers.get("Content-Type")):
        _check_type(stated)
    sent = _sent(body) if is_base64 else body.encode()
    if sent.startswith(GZIP):
        raise _compressed("the body is compressed")
    try:
        return sent.decode()
    except ValueError as error:
        raise _bad("the body is not UTF-8") from error


def _sent(body: str) -> bytes:
    try:
        return base64.b64decode(body)
    except ValueError as error:
        raise _bad("the body is not base64, as the gateway said it was") from error


def _bad(why: str) -> Problem:
    return Problem(HTTPStatus.BAD_REQUEST, "bad_request", why, field="body")


def _check_type(stated: str) -> None:
    message = Message()
    message["Content-Type"] = " ".join(stated.split())
    kind = stated.partition(";")[0].strip()
    charset = str(message.get_param("charset") or "utf-8").strip("\"'")
    if not JSON_TYPE.fullmatch(kind):
        raise _not_taken(f"the body has the Content-Type {kind[:100] or 'of nothing'}")
    if charset.lower() not in CHARSETS:
        raise _not_taken(f"the body has the charset {charset[:50]}")


def _not_taken(why: str) -> Problem:
    return Problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        f"{why}; send JSON in UTF-8, with Content-Type: application/json",
        field="Content-Type",
        headers={"Accept": "application/json"},
    )


def _compressed(why: str) -> Problem:
    return Problem(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        f"{why}; send it without compression. A file of ids for POST /v1/uploads may be gzip",
        field="Content-Encoding",
        headers={"Accept-Encoding": "identity"},
    )

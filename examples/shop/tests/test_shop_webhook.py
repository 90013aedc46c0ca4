"""The receiver takes what Fairlane sends, once, and nothing else."""

from __future__ import annotations

import hashlib
import hmac
import json

from shop_webhook import OLDEST_S, SECRET, Notices

BODY = json.dumps({"records": [{"id": "teapot", "version": 2, "gone": False}]}).encode()
NOW = 1_700_000_000


def headers(*, secret: str = SECRET, at: int = NOW, body: bytes = BODY) -> dict[str, str]:
    signed = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    return {
        "Idempotency-Key": "job:0",
        "Fairlane-Timestamp": str(at),
        "Fairlane-Signature": f"v1={signed}",
    }


def test_a_notice_is_taken_once() -> None:
    notices = Notices(SECRET, clock=lambda: NOW)
    assert [notices.take(headers(), BODY) for _ in range(2)] == [204, 204]
    assert notices.products == ["teapot"]


def test_what_is_signed_otherwise_or_old_is_refused() -> None:
    notices = Notices(SECRET, clock=lambda: NOW)
    assert notices.take({}, BODY) == 401
    assert notices.take(headers(secret="another"), BODY) == 401
    assert notices.take(headers(body=b"{}"), BODY) == 401
    assert notices.take(headers(at=NOW - OLDEST_S - 1), BODY) == 401
    assert notices.products == []

"""The shop's side of the webhook: it takes each notice once, and only from Fairlane.

``python shop_webhook.py`` listens on port 8099 and prints which products have changed.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 8099
SECRET = "only-for-this-machine"  # noqa: S105  settings.local.json has the same
OLDEST_S = 300


class Notices:
    """Those that were signed with the secret, once each. clock: seconds since the epoch."""

    def __init__(self, secret: str, clock: Callable[[], float] = time.time) -> None:
        self._secret = secret.encode()
        self._clock = clock
        self._seen: set[str] = set()
        self.products: list[str] = []

    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer."""
        stamp = headers.get("Fairlane-Timestamp", "")
        signed = hmac.new(self._secret, f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(headers.get("Fairlane-Signature", ""), f"v1={signed}"):
            return 401
        if abs(self._clock() - int(stamp)) > OLDEST_S:
            return 401
        key = headers["Idempotency-Key"]
        if key not in self._seen:
            self._seen.add(key)
            self.products += [each["id"] for each in json.loads(body)["records"]]
        return 204


def server(notices: Notices, port: int = PORT) -> ThreadingHTTPServer:
    """On loopback; port 0 takes a free one."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(notices.take(dict(self.headers), body))
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nowhere."""

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


class Printed(Notices):
    def take(self, headers: Mapping[str, str], body: bytes) -> int:
        status = super().take(headers, body)
        print(status, *self.products, flush=True)  # noqa: T201  printing is what it is for
        return status


if __name__ == "__main__":
    server(Printed(SECRET)).serve_forever()

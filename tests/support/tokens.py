"""Tokens of an issuer whose key set is served on loopback."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from handlers.settings import AuthSettings

ISSUER = "https://issuer.example"
AUDIENCE = "fairlane"
KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
SHORT_KEY = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505  # to be refused
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def public_jwk(key: Any, kid: str) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig"}


class KeySet:
    """A key set on a free port of loopback."""

    def __init__(self) -> None:
        self.body = self.of(("rsa", KEY), ("ec", EC_KEY), ("short", SHORT_KEY))
        self.status = 200
        self.reads = 0
        outer = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.reads += 1
                self.send_response(outer.status)
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # its name there
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Answer)
        self.url = f"http://127.0.0.1:{self._server.server_port}/keys"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @staticmethod
    def of(*keys: tuple[str, Any]) -> bytes:
        return json.dumps({"keys": [public_jwk(key, kid) for kid, key in keys]}).encode()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def settings_for(url: str) -> AuthSettings:
    return AuthSettings(auth_jwks_url=url, auth_issuer=ISSUER, auth_audience=AUDIENCE)


def claims(**other: Any) -> dict[str, Any]:
    """Good claims, with some replaced; None takes one out."""
    now = int(time.time())
    good = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "user-1",
        "tenant": "acme",
        "iat": now,
        "exp": now + 600,
    }
    return {name: value for name, value in {**good, **other}.items() if value is not None}


def token(key: Any = KEY, kid: str | None = "rsa", algorithm: str = "RS256", **other: Any) -> str:
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(claims(**other), key, algorithm=algorithm, headers=headers)

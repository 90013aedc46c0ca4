"""A development issuer: one key pair per stack, tokens, and the key set that checks them.

The key set is an object in a bucket of the local AWS, which serves it to an unsigned GET; so the
authorizer checks tokens here exactly as it does against a real issuer.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET: Final = "fairlane-development-issuer"
JWKS_KEY: Final = "jwks.json"
ISSUER: Final = "https://issuer.fairlane.localhost"
AUDIENCE: Final = "fairlane-local"
TENANT_CLAIM: Final = "tenant"
SCOPES: Final = ("jobs:read", "jobs:write")
KEY_ID: Final = "development"
KEY_BITS: Final = 2048
PUBLIC: Final = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:GetObject",
            "Resource": f"arn:aws:s3:::{BUCKET}/*",
        }
    ],
}


class Issuer:
    """Makes tokens with the key pair in ``folder``, which is created when it is not there."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "issuer.pem"
        self._key = _load(self._path) if self._path.exists() else _create(self._path)

    def token(self, tenant: str, *, expires_in: int = 3600, scopes: Sequence[str] = SCOPES) -> str:
        """An RS256 token for the tenant, valid for ``expires_in`` seconds from now (negative:
        expired already)."""
        now = int(time.time())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": f"developer@{tenant}",
            TENANT_CLAIM: tenant,
            "scope": " ".join(scopes),
            "iat": now,
            "exp": now + expires_in,
        }
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": KEY_ID})

    def jwks(self) -> str:
        """The public key set, as JSON text."""
        key = RSAAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        return json.dumps({"keys": [{**key, "kid": KEY_ID, "use": "sig", "alg": "RS256"}]})

    def publish(self, s3: S3Client) -> None:
        s3.create_bucket(Bucket=BUCKET)
        # As an issuer's keys are: for everybody.
        s3.delete_public_access_block(Bucket=BUCKET)
        s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps(PUBLIC))
        s3.put_object(
            Bucket=BUCKET,
            Key=JWKS_KEY,
            Body=self.jwks().encode(),
            ContentType="application/json",
        )


def jwks_url(aws: str) -> str:
    """Where the key set is fetched from the local AWS at this address."""
    return f"{aws}/{BUCKET}/{JWKS_KEY}"


def _create(path: Path) -> rsa.RSAPrivateKey:
    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    return key


def _load(path: Path) -> rsa.RSAPrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, rsa.RSAPrivateKey):
        raise TypeError(f"{path} does not hold an RSA private key: delete it to get a new one")
    return key

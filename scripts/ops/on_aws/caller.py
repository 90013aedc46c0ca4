"""Who calls the API: a token's tenant, or a role whose requests are signed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, ReadOnlyCredentials

from fairlane_client import Signer
from scripts.local.errors import LocalError
from scripts.ops.doctor.reading import FUNCTION, Of

SERVICE: Final = "execute-api"
SESSION: Final = "fairlane-aws-check"
API: Final = "ApiFunction"
"""Part of the logical id of the API's function."""
AUTH: Final = "FAIRLANE_CALLER_AUTH"


class IamSigner(Signer):
    """Signs requests to API Gateway."""

    def __init__(self, credentials: Credentials | ReadOnlyCredentials, region: str) -> None:
        self._credentials = credentials
        self._region = region

    def headers(self, method: str, url: str, body: bytes) -> Mapping[str, str]:
        request = AWSRequest(method=method, url=url, data=body)
        SigV4Auth(self._credentials, SERVICE, self._region).add_auth(request)
        return dict(request.headers)


def takes_signatures(resources: Of) -> bool:
    """Whether the API's callers sign with IAM. Raises ClientError, BotoCoreError."""
    for part, name in resources.get(FUNCTION, {}).items():
        if API in part:
            found = boto3.client("lambda").get_function_configuration(FunctionName=name)
            auth = found.get("Environment", {}).get("Variables", {}).get(AUTH)
            if auth is not None:  # else it is a function of the team's own
                return auth == "iam"
    return False


def signer(role: str | None) -> IamSigner:
    """Of the role, or of whoever runs the command. Raises LocalError, ClientError, BotoCoreError:
    the role cannot be assumed."""
    session = boto3.Session()
    if session.region_name is None:
        raise LocalError("no region is named: set AWS_REGION")
    if role is not None:
        made = session.client("sts").assume_role(RoleArn=role, RoleSessionName=SESSION)
        keys = made["Credentials"]
        assumed = Credentials(keys["AccessKeyId"], keys["SecretAccessKey"], keys["SessionToken"])
        return IamSigner(assumed, session.region_name)
    own = session.get_credentials()
    if own is None:
        raise LocalError("there are no AWS credentials to sign with")
    return IamSigner(own, session.region_name)

"""How long a function takes to start, beside an SDK client and a model alone.

As deployed: with its settings, and with the clients it makes while it starts. Processor time of a
process of its own, the least of several: what else the machine does only ever adds to it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from handlers.settings import AuthSettings, WorkSettings
from infra.settings import PRODUCTION_TIMING
from scripts.local.errors import LocalError
from scripts.local.steps import Steps

from .framework import Bench, Measured

AT_MOST: Final = 1.4
ROUNDS: Final = 10
ENTRYPOINTS: Final = ("api", "authorizer", "small_lane", "recovery")
ALONE: Final = "import boto3, pydantic; boto3.client('dynamodb'); pydantic.BaseModel"
TIMED: Final = """
import time
start = time.process_time()
{code}
print(time.process_time() - start)
"""


def run(steps: Steps) -> Measured:
    codes = {"alone": ALONE, **{name: f"import handlers.{name}" for name in ENTRYPOINTS}}
    least = dict.fromkeys(codes, float("inf"))
    with steps.step("Starts of every function", ROUNDS * len(codes)) as advance:
        # In turns, so that a busy moment is nobody's alone.
        for _ in range(ROUNDS):
            for name, code in codes.items():
                least[name] = min(least[name], _seconds(code))
                advance(1)
    return Measured(
        ratio=max(least[name] for name in ENTRYPOINTS) / least["alone"],
        at_most=AT_MOST,
        figures={f"ms {name}": seconds * 1000 for name, seconds in least.items()},
    )


BENCH: Final = Bench(
    "imports", "The slowest start of a function, of that of boto3, a client and pydantic", run
)


def _seconds(code: str) -> float:
    done = subprocess.run(  # noqa: S603  our own interpreter and code
        [sys.executable, "-c", TIMED.format(code=code)],
        env=_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise LocalError(f"a function does not start: {done.stderr}")
    return float(done.stdout.splitlines()[-1])


def _environment() -> dict[str, str]:
    work = WorkSettings(
        control_table="control",
        records_table="records",
        idempotency_table="idempotency",
        payload_bucket="payloads",
        small_queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/small",
        bulk_queue_url="https://sqs.eu-west-1.amazonaws.com/123456789012/bulk",
        timing=PRODUCTION_TIMING,
    )
    auth = AuthSettings(
        auth_jwks_url="https://issuer.example/keys", auth_issuer="issuer", auth_audience="audience"
    )
    return {
        **work.to_env(),
        **auth.to_env(),
        "PATH": os.environ["PATH"],
        "AWS_LAMBDA_FUNCTION_NAME": "function",
        "AWS_DEFAULT_REGION": "eu-west-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
    }

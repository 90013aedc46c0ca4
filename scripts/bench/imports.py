"""How long a function takes to start, beside an SDK client and a model alone.

As deployed: with its settings, and with the clients it makes while it starts. Processor time of a
process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from statistics import median
from typing import Final

from handlers.settings import AuthSettings, WorkSettings
from infra.settings import PRODUCTION_TIMING
from scripts.local.errors import LocalError

from .figures import Figure, at_most, in_turns
from .framework import Bench, Measured
from .place import Place

WANTED: Final = 1.25
AT_MOST: Final = 1.6
"""What holds with Powertools' router and batch utility (ADR 19), and on a busy machine, too: there,
what shares its caches with others takes longer, and more so the more code it runs only once."""
ROUNDS: Final = 16
ENTRYPOINTS: Final = ("api", "authorizer", "small_lane", "recovery")
ALONE: Final = "import boto3, pydantic; boto3.client('dynamodb'); pydantic.BaseModel"
TIMED: Final = """
import time
start = time.process_time()
{code}
print(time.process_time() - start)
"""


def run(place: Place) -> Measured:
    rounds = place.rounds(ROUNDS, 2)
    figures, facts = [], {}
    with place.steps.step("Starts of every function", 2 * rounds * len(ENTRYPOINTS)) as advance:
        for name in ENTRYPOINTS:

            def start(code: str) -> float:
                advance(1)
                return _seconds(code)

            ours, alone = in_turns(
                partial(start, f"import handlers.{name}"), partial(start, ALONE), rounds
            )
            figures.append(
                Figure.of(
                    f"cold start of {name} ÷ bare imports",
                    ours,
                    alone,
                    bound=at_most(AT_MOST),
                    aim=at_most(WANTED),
                )
            )
            facts[f"ms {name}"] = median(ours) * 1000
            facts["ms alone"] = median(alone) * 1000
    return Measured(figures=tuple(figures), facts=facts)


BENCH: Final = Bench(
    "imports", "The start of each function beside that of boto3, a client and pydantic alone", run
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

"""The local AWS: ministack as child processes on loopback.

The database has a process of its own. ministack answers everything from one thread; in a single
process every message and every call of a function would wait for whatever transaction of the bulk
lane is being worked on, which on AWS it does not.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import urllib3

from . import processes
from .errors import LocalError
from .processes import Process

HOST: Final = "127.0.0.1"
REGION: Final = "us-east-1"
ACCOUNT: Final = "000000000000"
CREDENTIALS: Final = {
    "AWS_ACCESS_KEY_ID": ACCOUNT,  # ministack takes a 12-digit key as the account
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_REGION": REGION,
}
START_TIMEOUT_S: Final = 300
STOP_GRACE_S: Final = 5
ATTEMPTS: Final = 3
DATABASE_URL: Final = "AWS_ENDPOINT_URL_DYNAMODB"
"""Where the AWS libraries look for the database's own address."""
ENFORCED: Final = {"AUTH": "true"}
"""ministack's environment in which it refuses what the caller's role does not allow."""

ONE_BY_ONE: Final = "FAIRLANE_ONE_BY_ONE"
"""Set for a database in which no request overtakes another (``ahead``)."""


def endpoint(port: int) -> str:
    return f"http://{HOST}:{port}"


def free_port() -> int:
    """A TCP port nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def addresses(port: int, database_port: int) -> dict[str, str]:
    """What an AWS client finds the local AWS by, in the environment."""
    return {"AWS_ENDPOINT_URL": endpoint(port), DATABASE_URL: endpoint(database_port)}


def start_database(
    folder: Path, started: Callable[[Process, int], None], *, one_by_one: bool = False
) -> tuple[Process, int]:
    """Like ``start``, of the database alone. one_by_one: no request overtakes another."""
    over = {"SERVICES": "dynamodb", **({ONE_BY_ONE: "1"} if one_by_one else {})}
    return start(folder, started, log="database.log", over=over)


def start(
    folder: Path,
    started: Callable[[Process, int], None],
    *,
    database_port: int | None = None,
    log: str = "ministack.log",
    over: Mapping[str, str] | None = None,
) -> tuple[Process, int]:
    """Start ministack on a free port and wait until it answers. ``started`` is told the process
    and its port before the wait. database_port: of the process that is its database; its functions
    inherit the address. over: more of its environment. Raises LocalError."""
    more = {DATABASE_URL: endpoint(database_port)} if database_port else {}
    for _ in range(ATTEMPTS):
        port = free_port()
        process = processes.start(
            [sys.executable, "-c", "from scripts.local.emulator import main; main()"],
            env={**_environment(folder, port), **more, **(over or {})},
            cwd=_folder(folder / "tmp"),
            log=folder / log,
        )
        try:
            started(process, port)
            if _wait_ready(process, port):
                return process, port
        except BaseException:
            stop(process)
            raise
    raise LocalError(
        f"the local AWS (ministack) ended while starting, {ATTEMPTS} times. Its last words "
        f"({process.log}):\n{process.tail()}"
    )


def stop(process: Process) -> None:
    """Stop it and the Lambda workers it started."""
    processes.stop([process], grace=STOP_GRACE_S)


def _environment(folder: Path, port: int) -> dict[str, str]:
    """Its whole environment. The Lambda workers inherit it, so nothing of the caller's shell (such
    as PYTHONPATH or real credentials) may come along."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.defpath]),
        "HOME": str(folder),
        "TMPDIR": str(_folder(folder / "tmp")),
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "MINISTACK_REGION": REGION,
        # Each of these opens a fixed port of its own, which two stacks would fight over.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LOG_LEVEL": "INFO",
        # A function that waited for its first job for minutes is to be as warm as at the start.
        "LAMBDA_WARM_TTL_SECONDS": "3600",
        **CREDENTIALS,
    }


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


def _wait_ready(process: Process, port: int) -> bool:
    """True when it answers, False when it ended (somebody else may have taken the port)."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if not process.alive():
            return False
        try:
            urllib3.request("GET", f"{endpoint(port)}/_ministack/ready", timeout=5, retries=False)
            # The answer may come from whoever took the port between the choice and the start.
            if process.listens(port):
                return True
        except urllib3.exceptions.HTTPError:
            pass
        time.sleep(0.05)
    raise LocalError(
        f"the local AWS (ministack) did not answer within {START_TIMEOUT_S} s. "
        f"Its last words ({process.log}):\n{process.tail()}"
    )

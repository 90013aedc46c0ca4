"""A node as a container of the public image, on loopback."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from typing import Final

from scripts.local.ministack import HOST

from .errors import SearchEngineError
from .java import HEAP

IMAGE: Final = "opensearchproject/opensearch:2.19.6"
PORT: Final = "9200/tcp"
LABEL: Final = "fairlane=opensearch"
ASK_TIMEOUT_S: Final = 20
RUN_TIMEOUT_S: Final = 600
"""The first run pulls the image."""

ENVIRONMENT: Final = {
    "discovery.type": "single-node",
    "node.store.allow_mmap": "false",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "DISABLE_SECURITY_PLUGIN": "true",
    "DISABLE_INSTALL_DEMO_CONFIG": "true",
    "OPENSEARCH_JAVA_OPTS": f"{HEAP} -Xms128m",
}


def answers(environ: Mapping[str, str]) -> bool:
    """A Docker daemon is there; the command alone is not enough."""
    try:
        _docker(environ, ASK_TIMEOUT_S, "version", "--format", "{{.Server.Version}}")
    except SearchEngineError:
        return False
    return True


def start(environ: Mapping[str, str]) -> str:
    """Start a container and return its id. Raises SearchEngineError."""
    settings = [each for name, value in ENVIRONMENT.items() for each in ("-e", f"{name}={value}")]
    options = ["--detach", "--label", LABEL, "--publish", f"{HOST}::{PORT.removesuffix('/tcp')}"]
    return _docker(environ, RUN_TIMEOUT_S, "run", *options, *settings, IMAGE).split()[-1]


def address(environ: Mapping[str, str], container: str) -> str:
    """host:port it is published on; empty until it is. Raises SearchEngineError when it does not
    run."""
    said = _docker(environ, ASK_TIMEOUT_S, "port", container, PORT)
    return next((line for line in said.splitlines() if line.startswith(HOST)), "")


def runs(environ: Mapping[str, str], container: str) -> bool:
    try:
        said = _docker(
            environ, ASK_TIMEOUT_S, "inspect", "--format", "{{.State.Running}}", container
        )
    except SearchEngineError:
        return False
    return said.strip() == "true"


def tail(environ: Mapping[str, str], container: str) -> str:
    """The end of its log, for error messages."""
    try:
        return _docker(environ, ASK_TIMEOUT_S, "logs", "--tail", "15", container)
    except SearchEngineError as error:
        return str(error)


def stop(environ: Mapping[str, str], container: str) -> None:
    """Remove it with its data; fine when it is gone already. Raises SearchEngineError."""
    _docker(environ, RUN_TIMEOUT_S, "rm", "--force", "--volumes", container)


def _docker(environ: Mapping[str, str], timeout: float, *arguments: str) -> str:
    docker = shutil.which("docker", path=environ.get("PATH"))
    if docker is None:
        raise SearchEngineError("there is no `docker` on PATH")
    try:
        run = subprocess.run(  # noqa: S603 - the user's own Docker
            [docker, *arguments],
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SearchEngineError(
            f"`docker {arguments[0]}` did not end within {timeout:g} s"
        ) from None
    if run.returncode:
        raise SearchEngineError(
            f"`docker {arguments[0]}` failed; mend it, or run OpenSearch without Docker "
            f"(`fairlane opensearch up --with java`):\n{run.stdout.strip()}"
        )
    return run.stdout

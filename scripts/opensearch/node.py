"""A real OpenSearch node."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import urllib3
from opensearchpy import OpenSearch

from scripts.local.errors import AlreadyUp
from scripts.local.steps import Steps

from . import docker, jars, java
from .client import client_of
from .errors import SearchEngineError
from .state import CACHE, NODE, NodeFolder, NodeState

ADDRESS: Final = "FAIRLANE_OPENSEARCH_URL"
START_TIMEOUT_S: Final = 300


class Way(StrEnum):
    """How a node is run."""

    AUTO = "auto"
    """Docker when its daemon answers, else Java."""
    DOCKER = "docker"
    JAVA = "java"


class OpenSearchNode:
    """``with OpenSearchNode(folder) as node: ...`` starts an empty node and removes it again; it
    ends with this process, whatever ends that. ``up``, ``attach`` and ``down`` do the same across
    commands. An address in FAIRLANE_OPENSEARCH_URL is used as it is, and nothing is started."""

    def __init__(
        self,
        folder: Path = NODE,
        *,
        way: Way = Way.AUTO,
        cache: Path = CACHE,
        environ: Mapping[str, str] | None = None,
        steps: Steps | None = None,
    ) -> None:
        """folder: state, data and log. cache: where jars are remembered. environ: in place of
        this process's environment."""
        self.folder = NodeFolder(folder)
        self._way = way
        self._cache = cache
        self._environ = dict(os.environ if environ is None else environ)
        self._steps = steps or Steps(quiet=True)
        self._state = NodeState()
        self.given = self._environ.get(ADDRESS, "").rstrip("/")
        """The address in the environment; empty when the node is ours to start."""

    # --- life --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        return self.up(parent=os.getpid())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()

    def up(self, *, parent: int = 0) -> Self:
        """Start a node and wait until it serves. parent: a process it must not outlive (Java
        only). Raises AlreadyUp; NoWay without the programs for it; SearchEngineError when it
        can't start. Nothing is left running then."""
        if self.given:
            self._wait(self.given)
            return self
        with self.folder.exclusive():
            if self.running():
                raise AlreadyUp(
                    f"an OpenSearch node is up already, at {self._state.url}. Stop it with "
                    "`fairlane opensearch down`"
                )
            self._stop()
            self.folder.log.unlink(missing_ok=True)
            try:
                self._start(parent)
            except BaseException:
                self._stop()
                raise
        return self

    def attach(self) -> Self:
        """Take over a node that an earlier command started. Raises SearchEngineError when there
        is none."""
        if not self.given and not self.running():
            raise SearchEngineError(
                "no OpenSearch node is up. Start one with `fairlane opensearch up`, or name one "
                f"in {ADDRESS}"
            )
        return self

    def down(self) -> bool:
        """Stop what ``up`` started and delete its data; true when it was running. A node of
        somebody else is left alone."""
        if self.given:
            return False
        with self.folder.exclusive():
            was_up = self.running()
            self._stop()
        return was_up

    def running(self) -> bool:
        """What an ``up`` with this folder started still runs."""
        self._state = self.folder.read()
        if process := self._state.process:
            return process.alive()
        return bool(self._state.container) and docker.runs(self._environ, self._state.container)

    # --- use ---------------------------------------------------------------------------------

    @property
    def state(self) -> NodeState:
        return self._state

    @property
    def log(self) -> Path:
        """Of the last start by Java; a container keeps its own (``docker logs``)."""
        return self.folder.log

    @property
    def url(self) -> str:
        return self.given or self._state.url

    def client(self) -> OpenSearch:
        """A client that never retries by itself; close it, or use it in a ``with``."""
        return client_of(self.url)

    # --- parts -------------------------------------------------------------------------------

    def _start(self, parent: int) -> None:
        if self._way is Way.DOCKER or (self._way is Way.AUTO and docker.answers(self._environ)):
            with self._steps.step(f"start the container {docker.IMAGE}"):
                self._remember(NodeState(container=docker.start(self._environ)))
        else:
            with self._steps.step("resolve OpenSearch's jars (minutes, the first time)"):
                program = jars.program(self._environ, self._cache)
            home, log = self.folder.path / "home", self.folder.log
            process = java.start(program, home, log, self._environ, parent)
            self._remember(NodeState(process=process))
        with self._steps.step("wait until it serves"):
            url = self._wait()
        self._remember(self._state.model_copy(update={"url": url}))

    def _remember(self, state: NodeState) -> None:
        self._state = state
        self.folder.write(state)

    def _stop(self) -> None:
        self._state = self._state if self._state.how != "none" else self.folder.read()
        if self._state.process:
            java.stop(self._state.process)
        if self._state.container:
            docker.stop(self._environ, self._state.container)
        self._state = NodeState()
        self.folder.clear()

    def _wait(self, url: str = "") -> str:
        """Its address, once its shards can be searched."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if not self.given and self._ended():
                raise SearchEngineError(
                    f"OpenSearch ended while starting. Its last words:\n{self._tail()}"
                )
            url = url or self._address()
            if url and _serves(url):
                return url
            if self.given:
                break
            time.sleep(0.1)
        if self.given:
            raise SearchEngineError(
                f"the OpenSearch named in {ADDRESS} does not answer: start it, or unset {ADDRESS} "
                "so that a node is started here"
            )
        raise SearchEngineError(
            f"OpenSearch did not serve within {START_TIMEOUT_S} s. Its last words:\n{self._tail()}"
        )

    def _address(self) -> str:
        if self._state.container:
            found = docker.address(self._environ, self._state.container)
        else:
            found = java.address(self.folder.path / "home")
        return f"http://{found}" if found else ""

    def _ended(self) -> bool:
        if process := self._state.process:
            return not process.alive()
        return not docker.runs(self._environ, self._state.container)

    def _tail(self) -> str:
        if process := self._state.process:
            return f"({process.log})\n{process.tail()}"
        return docker.tail(self._environ, self._state.container)


def _serves(url: str) -> bool:
    health = f"{url}/_cluster/health?wait_for_status=yellow&timeout=5s"
    try:
        return urllib3.request("GET", health, timeout=10, retries=False).status == HTTPStatus.OK
    except urllib3.exceptions.HTTPError:
        return False

"""A node as a Java process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.local import processes
from scripts.local.ministack import HOST
from scripts.local.processes import Process

from .jars import MAIN, Program

HEAP: Final = "-Xmx512m"
STOP_GRACE_S: Final = 20

OPTIONS: Final = (
    HEAP,
    "-Xms128m",
    "-Xss1m",
    "-XX:+UseSerialGC",  # a few cores, a small heap
    "-XX:TieredStopAtLevel=1",  # it lives for minutes: the best compiler never pays off
    "-XX:+ExitOnOutOfMemoryError",
    "-Dfile.encoding=UTF-8",
    # The port is an HTTP one: netty's shortcuts past the JVM's own checks are not worth it.
    "-Dio.netty.noUnsafe=true",
    "-Dlog4j2.disable.jmx=true",
    "-Dorg.apache.logging.log4j.level=INFO",
)
SETTINGS: Final = {
    "cluster.name": "fairlane",
    "node.name": "fairlane",
    "discovery.type": "single-node",
    "network.host": HOST,
    # Chosen by the system when the socket is bound, so two nodes never want the same one.
    "http.port": "0",
    "transport.port": "0",
    # Works without raising vm.max_map_count.
    "node.store.allow_mmap": "false",
    # A developer's nearly full disk must not turn the node read-only.
    "cluster.routing.allocation.disk.threshold_enabled": "false",
}


def start(
    program: Program, folder: Path, log: Path, environ: Mapping[str, str], parent: int
) -> Process:
    """Start a node that keeps its data in ``folder`` and ends with the process ``parent`` (0:
    with nobody). Raises OSError."""
    temporary = folder / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    command = [program.java, *OPTIONS, f"-Djava.io.tmpdir={temporary}", "-cp", program.classpath]
    return processes.start(
        [*command, MAIN, str(folder), str(parent), *settings], env=environ, cwd=folder, log=log
    )


def address(folder: Path) -> str:
    """host:port of its HTTP endpoint; empty until it serves."""
    file = folder / "address"
    return file.read_text() if file.exists() else ""


def stop(process: Process) -> None:
    processes.stop([process], grace=STOP_GRACE_S)

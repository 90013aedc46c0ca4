"""Starting a search engine on a machine that lacks something, or has Docker; and the embedded one's
start and end."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import psutil
import pytest
from opensearchpy import OpenSearch

from scripts.opensearch import docker, jars
from scripts.opensearch.embedded import EmbeddedSearch
from scripts.opensearch.errors import NoWay, SearchEngineError
from scripts.opensearch.node import OpenSearchNode
from tests.support.nodes import or_skip

# --- a machine that lacks something -------------------------------------------------------------

JAVA_17: Final = "echo 'openjdk version \"17.0.1\" 2021-10-19'"
JAVA_8: Final = "echo 'java version \"1.8.0_292\"'"
NO_NETWORK: Final = "echo 'Could not transfer artifact: Unknown host'; exit 1"
WRONG_JAR: Final = 'for a; do case $a in *outputFile=*) echo "$0" > "${a#*=}";; esac; done'


def machine(folder: Path, programs: Mapping[str, str]) -> dict[str, str]:
    """The environment of a machine with these shell scripts as its only programs."""
    folder.mkdir()
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(
    ("programs", "kind", "says"),
    [
        ({}, NoWay, "Java 17 or newer, and there is none on PATH: install"),
        ({"java": JAVA_8}, NoWay, r"1\.8\.0_292.*: install one, set JAVA_HOME"),
        ({"java": "exit 0"}, NoWay, "is no version: install"),
        ({"java": JAVA_17}, NoWay, "Maven is needed once.*: install it"),
        ({"java": JAVA_17, "mvn": NO_NETWORK}, SearchEngineError, "check the network.*\n.*Unknown"),
        ({"java": JAVA_17, "mvn": WRONG_JAR}, SearchEngineError, "are not the ones pinned.* mvn,"),
        ({"docker": "exit 1"}, NoWay, "there is none on PATH"),
        (
            {"docker": '[ "$1" = version ] || { echo no space left; exit 1; }'},
            SearchEngineError,
            "--with java(.*\n)*no space left",
        ),
    ],
    ids=["none", "old", "odd", "no-maven", "no-network", "jars", "no-daemon", "docker-fails"],
)
def test_what_is_missing_is_named(
    tmp_path: Path, programs: dict[str, str], kind: type[SearchEngineError], says: str
) -> None:
    environ = machine(tmp_path / "bin", programs)
    node = OpenSearchNode(tmp_path / "node", cache=tmp_path / "cache", environ=environ)
    with pytest.raises(SearchEngineError, match=says) as caught:
        node.up()
    assert caught.type is kind
    assert not node.running()


def test_java_home_goes_before_path(tmp_path: Path) -> None:
    environ = {**machine(tmp_path / "bin", {"java": JAVA_17}), "JAVA_HOME": str(tmp_path / "jdk")}
    node = OpenSearchNode(tmp_path / "node", cache=tmp_path / "cache", environ=environ)
    with pytest.raises(NoWay, match=f"JAVA_HOME={re.escape(str(tmp_path / 'jdk'))} has none"):
        node.up()


def test_without_a_way_a_developer_skips_and_ci_fails(tmp_path: Path) -> None:
    bare = OpenSearchNode(tmp_path / "node", environ={"PATH": str(tmp_path)})
    with pytest.raises(pytest.skip.Exception):
        or_skip(bare.up, {})
    with pytest.raises(NoWay):
        or_skip(bare.up, {"CI": "true"})


# --- Docker, played by a script: what is asked of it, not whether the image works ----------------

DOCKER: Final = """
echo "$*" >> {calls}
case $1 in
    run) echo 0123abcd;;
    port) echo {address};;
    inspect) if [ -e {gone} ]; then echo false; else echo true; fi;;
    logs) echo no heap left;;
    rm) : > {gone};;
esac
"""


def test_docker_goes_before_java_and_its_container_is_removed(
    tmp_path: Path, embedded_engine: EmbeddedSearch
) -> None:
    calls, address = tmp_path / "calls", embedded_engine.url.removeprefix("http://")
    script = DOCKER.format(calls=calls, address=address, gone=tmp_path / "gone")
    environ = machine(tmp_path / "bin", {"docker": script, "java": JAVA_8})
    node = OpenSearchNode(tmp_path / "node", environ=environ).up()
    assert node.url == embedded_engine.url
    assert OpenSearchNode(tmp_path / "node", environ=environ).attach().state.how == "docker"
    assert node.down()
    asked = calls.read_text().splitlines()
    [run] = [call for call in asked if call.startswith("run ")]
    assert run.endswith(f" {docker.IMAGE}")
    assert "--publish 127.0.0.1::9200 " in run
    assert asked[-1] == "rm --force --volumes 0123abcd"
    assert not node.down()


def test_a_container_that_ends_while_starting_is_told_and_removed(tmp_path: Path) -> None:
    calls, gone = tmp_path / "calls", tmp_path / "gone"
    gone.touch()
    environ = machine(
        tmp_path / "bin", {"docker": DOCKER.format(calls=calls, address="", gone=gone)}
    )
    with pytest.raises(SearchEngineError, match=r"ended while starting(.*\n)*no heap"):
        OpenSearchNode(tmp_path / "node", environ=environ).up()
    assert calls.read_text().splitlines()[-1] == "rm --force --volumes 0123abcd"


def test_the_image_is_the_version_of_the_jars() -> None:
    version = re.search("<opensearch.version>(.+)</", jars.POM.read_text())
    assert version is not None
    assert docker.IMAGE.endswith(f":{version[1]}")


# --- the embedded engine ------------------------------------------------------------------------


def test_two_embedded_engines_share_nothing(embedded: OpenSearch, tmp_path: Path) -> None:
    index = "ours"
    embedded.indices.create(index=index)
    with EmbeddedSearch(tmp_path) as other, other.client() as client:
        assert not client.indices.exists(index=index)
        process = other.process
    assert process is not None
    assert not process.alive()
    assert embedded.indices.exists(index=index)


def test_an_embedded_engine_ends_with_its_owner(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, sys; from scripts.opensearch.embedded import EmbeddedSearch\n"
        "with EmbeddedSearch(pathlib.Path(sys.argv[1])) as engine:\n"
        "    print(engine.process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == -9, run.stderr
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(int(run.stdout)).wait(600)


def test_an_embedded_engine_that_does_not_start_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = machine(tmp_path / "bin", {"osmem": "echo out of luck; exit 3"})
    monkeypatch.setenv("OSMEM_SERVER_BIN", f"{environ['PATH']}/osmem")
    with pytest.raises(SearchEngineError, match="out of luck"):
        EmbeddedSearch(tmp_path).up()

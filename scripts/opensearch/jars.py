"""The server's jars: resolved once by Maven from the pinned pom, checked against their hashes,
and the launcher compiled against them.

``python -m scripts.opensearch.jars`` prints the hashes for ``jars.sha256``.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from .errors import NoWay, SearchEngineError
from .state import CACHE, locked

HERE: Final = Path(__file__).parent
POM: Final = HERE / "pom.xml"
SOURCE: Final = HERE / "NodeLauncher.java"
HASHES: Final = HERE / "jars.sha256"
MAIN: Final = SOURCE.stem
JAVA_MINIMUM: Final = 17
RESOLVE_TIMEOUT_S: Final = 600
COMPILE_TIMEOUT_S: Final = 120
WHAT_ELSE: Final = (
    "Or start Docker, or name a running OpenSearch in FAIRLANE_OPENSEARCH_URL (docs/opensearch.md)."
)
_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


@dataclass(frozen=True)
class Program:
    """What is needed to start a node."""

    java: str
    classpath: str


def program(environ: Mapping[str, str], cache: Path = CACHE) -> Program:
    """Java, and the class path of launcher and server. Resolves and compiles what the cache
    lacks: seconds to minutes, once. Raises NoWay without the tools; SearchEngineError."""
    java = _java(environ)
    key = _digest(POM.read_bytes() + SOURCE.read_bytes() + HASHES.read_bytes() + java.encode())
    folder = cache / key[:16]
    with locked(cache / "cache.lock", wait=True):
        found = _remembered(folder)
        if found is None:
            found = resolve(environ)
            _check(found)
            _compile(java, environ, found, folder)
            (folder / "classpath").write_text("\n".join(map(str, found)))
    return Program(java, os.pathsep.join(map(str, [folder, *found])))


def resolve(environ: Mapping[str, str]) -> list[Path]:
    """The jars of the pom, in the user's own Maven repository. Raises NoWay without Maven,
    SearchEngineError when Maven fails."""
    maven = shutil.which("mvn", path=environ.get("PATH"))
    if maven is None:
        raise NoWay(
            "Maven is needed once, to fetch OpenSearch: install it so that `mvn` is on PATH. "
            + WHAT_ELSE
        )
    command = [maven, "--batch-mode", "--quiet", "--strict-checksums", "--file", str(POM)]
    with NamedTemporaryFile() as listing:
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={listing.name}"]
        said = _run([*command, *goal], environ, RESOLVE_TIMEOUT_S)
        jars = [Path(name) for name in Path(listing.name).read_text().strip().split(os.pathsep)]
    if missing := [str(jar) for jar in jars if not jar.is_file()]:
        raise SearchEngineError(f"Maven named jars that are not there: {missing}\n{said}")
    return jars


def _java(environ: Mapping[str, str]) -> str:
    """The Java of JAVA_HOME, else of PATH. Raises NoWay for none or one that is too old."""
    home = environ.get("JAVA_HOME")
    java = (
        str(Path(home, "bin", "java")) if home else shutil.which("java", path=environ.get("PATH"))
    )
    need = f"OpenSearch needs a JDK of Java {JAVA_MINIMUM} or newer"
    if java is None or not os.access(java, os.X_OK):
        where = f"JAVA_HOME={home} has none" if home else "there is none on PATH"
        raise NoWay(f"{need}, and {where}: install one. {WHAT_ELSE}")
    said = _run([java, "-version"], environ, COMPILE_TIMEOUT_S)
    version = _JAVA_VERSION.search(said)
    if version is None or int(version[1]) < JAVA_MINIMUM:
        told = said.strip().splitlines()[0] if said.strip() else "no version"
        raise NoWay(f"{need}, and {java} is {told}: install one, set JAVA_HOME. {WHAT_ELSE}")
    return java


def _remembered(folder: Path) -> list[Path] | None:
    """The jars resolved before, if all of them and the launcher are still there."""
    file = folder / "classpath"
    jars = [Path(line) for line in file.read_text().splitlines()] if file.exists() else []
    complete = jars and (folder / f"{MAIN}.class").exists() and all(jar.is_file() for jar in jars)
    return jars if complete else None


def _check(jars: Sequence[Path]) -> None:
    """Exactly the pinned jars, byte for byte. Raises SearchEngineError."""
    differing = set(hashes(jars).splitlines()) ^ set(HASHES.read_text().splitlines())
    if differing:
        names = sorted({line.split()[1] for line in differing})
        raise SearchEngineError(
            f"these jars are not the ones pinned in {HASHES.name}: {', '.join(names)}. Delete "
            "them from your Maven repository and try again. If they differ again, do not trust "
            f"their repository. (After a change of {POM.name}, write {HASHES.name} anew.)"
        )


def hashes(jars: Sequence[Path]) -> str:
    """The content of ``jars.sha256`` for these jars."""
    lines = [f"{_digest(jar.read_bytes())}  {jar.name}\n" for jar in jars]
    return "".join(sorted(lines, key=lambda line: line.split()[1]))


def _compile(java: str, environ: Mapping[str, str], jars: Sequence[Path], folder: Path) -> None:
    beside = [path.with_name("javac") for path in (Path(java), Path(java).resolve())]
    javac = next((path for path in beside if path.exists()), None)
    if javac is None:
        raise NoWay(f"{java} has no compiler (javac) beside it: install a JDK. {WHAT_ELSE}")
    folder.mkdir(parents=True, exist_ok=True)
    classpath = os.pathsep.join(map(str, jars))
    command = [str(javac), "-cp", classpath, "-proc:none", "-d", str(folder), str(SOURCE)]
    _run(command, environ, COMPILE_TIMEOUT_S)


def _run(command: Sequence[str], environ: Mapping[str, str], timeout: float) -> str:
    """What the command printed. Raises SearchEngineError with its last words."""
    name = Path(command[0]).name
    try:
        run = subprocess.run(  # noqa: S603 - the user's own Java and Maven
            command,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SearchEngineError(f"`{name}` did not end within {timeout:g} s") from None
    if run.returncode:
        said = "\n".join(run.stdout.strip().splitlines()[-15:])
        hint = (
            ". It needs Maven Central once: check the network, the proxy, or the mirror named in "
            "Maven's settings.xml, and try again"
            if name == "mvn"
            else ""
        )
        raise SearchEngineError(f"`{name}` failed{hint}:\n{said}")
    return run.stdout


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


if __name__ == "__main__":
    print(hashes(resolve(os.environ)), end="")

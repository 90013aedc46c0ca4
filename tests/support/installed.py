"""Distributions as others have them: a wheel, in an environment that has no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from scripts.checks import tree

ROOT: Final = Path(__file__).parents[2]
CONTROLLED: Final = frozenset({"PATH", "HOME", "UV_CACHE_DIR", "SSL_CERT_FILE", "UV_INDEX_URL"})


class Installed:
    """An environment with one wheel and what the wheel says it needs."""

    def __init__(self, folder: Path, wheel: Path, *, extra: str = "") -> None:
        """extra: of the wheel, such as ``[cdk]``."""
        self.wheel, self.extra = wheel, extra
        self.bin = folder / "venv" / "bin"
        self.folder = folder
        venv.create(folder / "venv", with_pip=False)
        self.install(f"{self.wheel}{extra}")

    def install(self, *what: str) -> None:
        """More packages, in the versions of requirements/dev.txt where that has them."""
        uv = Path(sys.executable).parent / "uv"
        lock = ROOT / "requirements" / "dev.txt"
        where = ["--python", str(self.bin / "python"), "--constraints", str(lock)]
        command = [str(uv), "pip", "install", "--quiet", *where, *what]
        subprocess.run(command, check=True, cwd=self.folder)
        share_compiled(Path(sysconfig.get_path("purelib")), self.packages)

    def compile_wheel(self) -> None:
        """As pip does, and uv does not: many functions would compile the same modules at once."""
        with zipfile.ZipFile(self.wheel) as wheel:
            packages = {Path(name).parts[0] for name in wheel.namelist() if name.endswith(".py")}
        self.run("python", "-m", "compileall", "-q", *sorted(packages), cwd=self.packages)

    @property
    def packages(self) -> Path:
        """Where its packages lie."""
        [found] = self.bin.parent.glob("lib/python*/site-packages")
        return found

    def run(
        self,
        *command: str,
        status: int = 0,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Away from the checkout and from its environment."""
        kept = {name: os.environ[name] for name in CONTROLLED & set(os.environ)}
        done = subprocess.run(
            [self.bin / command[0], *command[1:]],
            cwd=cwd or self.folder,
            env={**kept, **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done

    def shell(self, script: str, *, cwd: Path) -> str:
        """What a script of a page says on both of its outputs, in the activated environment."""
        path = os.pathsep.join([str(self.bin), os.environ["PATH"]])
        kept = {name: os.environ[name] for name in CONTROLLED & set(os.environ)}
        done = subprocess.run(
            ["bash", "-euc", script],
            cwd=cwd,
            env={**kept, "PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    def has(self, module: str) -> bool:
        program = f"import importlib.util as u; print(u.find_spec({module!r}) is not None)"
        return self.run("python", "-c", program).stdout == "True\n"


def share_compiled(here: Path, there: Path) -> None:
    """Give the packages in the folder ``there`` what Python has compiled of the same files in
    ``here``: compiling the CDK and boto3 takes longer than most tests. Python takes it only for a
    source of the same size and time, which uv keeps."""
    for compiled in here.glob("**/__pycache__/*.pyc"):
        copy = there / compiled.relative_to(here)
        name = f"{compiled.name.partition('.')[0]}.py"
        ours, theirs = compiled.parents[1] / name, copy.parents[1] / name
        if not copy.exists() and theirs.exists() and _alike(ours, theirs):
            copy.parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, copy)


def _alike(one: Path, other: Path) -> bool:
    if not one.exists():
        return False
    a, b = one.stat(), other.stat()
    return (a.st_size, a.st_mtime_ns) == (b.st_size, b.st_mtime_ns)


def wheel_of(folder: Path, source: Path = Path()) -> Path:
    """The wheel of the project in ``source`` of the checkout, built in a new folder. Of what git
    has, so that no earlier build is in it."""
    copy = folder / "source"
    for name in tree.tracked(ROOT):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", folder, copy / source], check=True)
    shutil.rmtree(copy)
    [made] = folder.glob("*.whl")
    return made

"""Which Python ``make`` takes, and where it puts the environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.shown import RECIPES

ROOT: Final = Path(__file__).parents[2]
HERE: Final = "{}.{}".format(*sys.version_info[:2])
SOURCES: Final = (
    *("requirements/setup.txt", "requirements/dev.txt"),
    *("pyproject.toml", "client/pyproject.toml"),
)


def make(folder: Path, *words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """In a folder that has the Makefile. path: the only place where programs are found first."""
    env = {n: v for n, v in os.environ.items() if n not in {"PYTHON", "MAKEFLAGS", "MAKELEVEL"}}
    if path is not None:
        env |= {"PATH": f"{path}:{env['PATH']}", "HOME": str(folder), "PYENV_ROOT": str(folder)}
    return subprocess.run(
        ["make", *words], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for folder in ("requirements", "client"):
        (tmp_path / folder).mkdir()
    for name in SOURCES:
        (tmp_path / name).touch()
    return tmp_path


def test_bytecode_is_cached_whatever_the_callers_environment_says(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "more.mk").write_text("show:\n\t@env\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    shown = make(project, "-f", "Makefile", "-f", "more.mk", "show").stdout
    assert "VIRTUAL_ENV=" in shown
    assert "PYTHONDONTWRITEBYTECODE" not in shown


def test_the_list_of_targets_fits_a_terminal(project: Path) -> None:
    lines = make(project, "help").stdout.splitlines()
    assert len(lines) > 20
    assert [line for line in lines if len(line) > 80] == []


def test_a_certificate_that_is_named_once_reaches_pip_and_node(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "more.mk").write_text("show:\n\t@env\n", encoding="utf-8")
    for name in ("SSL_CERT_FILE", "PIP_CERT", "NODE_EXTRA_CA_CERTS"):
        monkeypatch.delenv(name, raising=False)
    words = ("-f", "Makefile", "-f", "more.mk", "show")
    assert "PIP_CERT=" not in make(project, *words).stdout
    monkeypatch.setenv("SSL_CERT_FILE", "/proxy.pem")
    monkeypatch.setenv("NODE_EXTRA_CA_CERTS", "/node.pem")
    shown = make(project, *words).stdout.splitlines()
    assert "PIP_CERT=/proxy.pem" in shown
    assert "NODE_EXTRA_CA_CERTS=/node.pem" in shown


@pytest.mark.parametrize("target", RECIPES)
def test_a_target_of_the_pages_comes_down_to_its_command(project: Path, target: str) -> None:
    """``RECIPES`` names the test that runs the command itself."""
    for file in (ROOT / "requirements").rglob("*.*"):
        copy = project / file.relative_to(ROOT)
        copy.parent.mkdir(exist_ok=True)
        copy.touch()
    command, _ = RECIPES[target]
    said = make(project, "-n", target, "SEED=7", "RUNS=20000", f"PYTHON={sys.executable}")
    assert said.returncode == 0, said.stderr
    assert f".venv-{HERE}/" in said.stdout
    assert f"bin/{command}" in said.stdout


def test_a_target_that_is_not_there_is_seen(project: Path) -> None:
    assert make(project, "-n", "explode").returncode != 0


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder of commands; every Python that make looks for fails, as pyenv's stand-ins do."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("python3", *(f"python3.{minor}" for minor in range(11, 15))):
        command(folder / name, "echo 'not in this version' >&2; exit 127")
    return folder


def command(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)


def test_a_python_that_is_named_has_an_environment_of_its_own(project: Path) -> None:
    named = make(project, "-n", "setup", f"PYTHON={sys.executable}")
    assert f"-m venv --clear .venv-{HERE};" in named.stdout, named.stderr


def test_the_python_that_is_deployed_comes_before_others(project: Path, programs: Path) -> None:
    for name in ("python3", "python3.13"):
        command(programs / name, f'exec {sys.executable} "$@"')
    made = make(project, "-n", "setup", path=programs)
    assert "python='python3.13'" in made.stdout, made.stderr
    assert "-m venv --clear .venv;" in made.stdout


@pytest.mark.parametrize("there", ["python3", "python3.12"])
def test_another_that_is_new_enough_will_do(project: Path, programs: Path, there: str) -> None:
    command(programs / there, f'exec {sys.executable} "$@"')
    assert f"python='{there}'" in make(project, "-n", "setup", path=programs).stdout


def test_without_one_that_is_new_enough_make_says_so_and_leaves_nothing(
    project: Path, programs: Path
) -> None:
    before = set(project.iterdir())
    ended = make(project, "check", path=programs)
    assert ended.returncode != 0
    assert "needs Python 3.11 or newer; 'python3' is not in this version" in ended.stderr
    assert "make check PYTHON=python3.13" in ended.stderr
    assert set(project.iterdir()) == before

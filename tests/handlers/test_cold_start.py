"""A function's start: without the garbage collector, which is on again at its end."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from handlers.settings import AuthSettings

if TYPE_CHECKING:
    from tests.handlers.deployment import Deployment

AUTH = AuthSettings(
    auth_jwks_url="https://issuer.example/keys", auth_issuer="issuer", auth_audience="audience"
)
LOOK = """
import gc, handlers
started = gc.isenabled()
import handlers.{name}
print(started, gc.isenabled(), gc.get_freeze_count() > 10_000)
"""


RARELY_NEEDED = {
    "aws_lambda_powertools.utilities.parser": ["api", "small_lane", "recovery"],
    "sqlite3": ["api", "small_lane", "recovery"],
    "opensearchpy": ["api", "small_lane", "recovery"],
    "handlers.jobs.words.filters": ["small_lane", "recovery"],
}
"""Modules that are slow to import, and the functions that start without them."""


@pytest.mark.parametrize("name", RARELY_NEEDED)
def test_what_few_jobs_need_is_there(name: str) -> None:
    assert importlib.util.find_spec(name)


@pytest.mark.parametrize("name", ["api", "small_lane", "recovery"])
def test_a_function_starts_without_what_few_jobs_need(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in AUTH.to_env().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", name)
    code = f"import sys, handlers.{name}\nprint(*sys.modules)"
    looked = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    there = set(looked.stdout.split())
    assert f"handlers.{name}" in there
    assert not {module for module, names in RARELY_NEEDED.items() if name in names} & there


@pytest.mark.parametrize("name", ["api", "authorizer", "small_lane", "recovery"])
def test_a_function_looks_for_no_plugins_of_pydantic(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The look reads the metadata of every installed package."""
    for variable, value in AUTH.to_env().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", name)
    monkeypatch.delenv("PYDANTIC_DISABLE_PLUGINS", raising=False)
    code = (
        "import importlib.metadata as metadata, sys\n"
        "groups = []\n"
        "metadata.entry_points = lambda **asked: groups.append(asked) or ()\n"
        f"import handlers.{name}\n"
        "print(groups)"
    )
    looked = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert looked.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["api", "authorizer", "small_lane", "recovery"])
def test_garbage_is_collected_again_once_a_function_has_started(
    stack: Deployment, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in AUTH.to_env().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", name)
    looked = subprocess.run(
        [sys.executable, "-c", LOOK.format(name=name)], capture_output=True, text=True, check=True
    )
    assert looked.stdout.split() == ["False", "True", "True"]


def test_other_processes_collect_as_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    looked = subprocess.run(
        [sys.executable, "-c", LOOK.format(name="bulk_worker")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert looked.stdout.split() == ["True", "True", "False"]

"""What is installed is enough: the client alone, and the backend alone, each in an environment that
has nothing else. Packages come as ``make setup`` gets them, and mostly from what it has kept."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from scripts.local import airports
from scripts.local.stack import LocalStack
from tests.support.installed import Installed, wheel_of

TENANT: Final = "installed"
IDS: Final = ("007", "07")
PYTHON: Final = """
from decimal import Decimal
from os import environ
from fairlane_client import Client, NewJob, State
with Client(environ["FAIRLANE_URL"], lambda: environ["FAIRLANE_TOKEN"]) as client:
    params = {"field": "elevation", "add": Decimal("0.5")}
    job = client.submit(NewJob(
        operation="adjust_number", subject="python", ids=["007", "07"], params=params
    ))
    job = client.wait(job.id, timeout=120)
    assert job.state is State.SUCCEEDED, job
    assert job.id in {each.id for each in client.jobs(operation="adjust_number")}
    print(job.succeeded)
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("client")
    return Installed(folder, wheel_of(folder, Path("client")))


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Installed:
    return Installed(tmp_path_factory.mktemp("backend"), wheel)


@pytest.fixture(scope="module")
def api(stack: LocalStack) -> dict[str, str]:
    """The environment that names the local stack's API, and a tenant with two records."""
    some = list(airports.airports_by_tenant()["islands"].values())[: len(IDS)]
    records = {TENANT: dict(zip(IDS, some, strict=True))}
    table = stack.deployed.outputs["RecordsTable"]
    airports.load(stack.clients.dynamodb, table, tenants=records)
    return {"FAIRLANE_URL": stack.api.url, "FAIRLANE_TOKEN": stack.issuer.token(TENANT)}


# --- the client -------------------------------------------------------------------------------


def test_the_client_needs_nothing_of_the_backend(client: Installed) -> None:
    for module in ("handlers", "infra", "scripts", "tests", "boto3", "opensearchpy", "aws_cdk"):
        assert not client.has(module), module
    names = zipfile.ZipFile(client.wheel).namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"fairlane_client"}
    assert "fairlane_client/py.typed" in names
    assert client.run("fairlane", "--help").stdout.count("\n  jobs ") == 1
    assert client.run("fairlane", "dlq", "list", status=2).stdout == ""
    said = client.run("fairlane", "jobs", "list", status=2).stderr
    assert "FAIRLANE_URL" in said


def test_a_job_is_submitted_watched_and_listed(client: Installed, api: Mapping[str, str]) -> None:
    submit = ("jobs", "submit", "--operation", "adjust_number", "--subject", "installed")
    what = ("--param", 'field="elevation"', "--param", "add=0.5", "--id", "007", "--id", "07")
    shown = json.loads(client.run("fairlane", *submit, *what, "--json", env=api).stdout)
    watched = client.run("fairlane", "jobs", "watch", shown["id"][:20], env=api)
    assert watched.stderr.splitlines()[-1] == "SUCCEEDED: 2 of 2 records changed"
    listed = client.run("fairlane", "jobs", "list", "--state", "SUCCEEDED", env=api).stdout
    assert shown["id"] in listed
    assert "\x1b" not in listed
    gone = (*what[2:4], "--id", "nowhere", "--param", 'field="name"', "--id", "07", "--wait")
    ended = client.run("fairlane", *submit, *gone, env=api, status=3).stderr.splitlines()[-1]
    assert ended.startswith("SUCCEEDED: 0 of 2 records changed, 1 failed, 1 skipped")


def test_the_same_in_python(client: Installed, api: Mapping[str, str]) -> None:
    assert client.run("python", "-W", "error", "-c", PYTHON, env=api).stdout == "2\n"


def test_the_ends_have_their_own_statuses(client: Installed, api: Mapping[str, str]) -> None:
    listing = ("fairlane", "jobs", "list")
    client.run(*listing, env={**api, "FAIRLANE_TOKEN": "none"}, status=7)
    client.run(*listing, env={**api, "FAIRLANE_URL": "http://127.0.0.1:9"}, status=6)
    client.run("fairlane", "jobs", "get", "0" * 32, env=api, status=1)
    client.run("fairlane", "jobs", "get", "ffffffff", env=api, status=2)


# --- the backend ------------------------------------------------------------------------------


def test_the_backend_has_the_whole_command_without_development_tools(backend: Installed) -> None:
    for module in ("tests", "aws_cdk", "pytest", "moto", "ministack", "psutil", "airportsdata"):
        assert not backend.has(module), module
    shown = backend.run("fairlane", "--help").stdout
    for command in (
        "jobs",
        "lanes",
        "dlq",
        "dispatches",
        "drift",
        "effects",
        "events",
        "tenants",
        "demo",
    ):
        assert f"\n  {command} " in shown
    for command in ("dlq list", "drift", "effects list", "events replay", "tenants set"):
        assert "--stack" in backend.run("fairlane", *command.split(), "--help").stdout
    assert "waf_jobs_limit" in backend.run("fairlane", "payload-budget").stdout


@pytest.mark.parametrize("command", ["demo", "verify --all", "bench", "simulate --seed 1", "soak"])
def test_what_needs_a_checkout_says_so(backend: Installed, command: str) -> None:
    name = command.split()[0]  # noqa: PLC0207  one word or several
    # Of a command that compares, 1 means that something differs.
    status = 2 if name in {"simulate", "soak"} else 1
    said = backend.run("fairlane", *command.split(), status=status).stderr
    assert said.startswith(f"error: `fairlane {name}` needs a checkout of Fairlane")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("command", ["local up", "token --tenant shop"])
def test_what_needs_an_extra_says_so(backend: Installed, command: str) -> None:
    said = backend.run("fairlane", *command.split(), status=1).stderr
    assert "pip install 'fairlane[local]'" in said
    assert len(said.splitlines()) == 1


def test_without_a_local_stack_another_is_named(backend: Installed) -> None:
    assert "--stack" in backend.run("fairlane", "dlq", "list", status=1).stderr
    assert "--url" in backend.run("fairlane", "jobs", "list", status=1).stderr


def test_operators_commands_work_on_a_deployed_stack(backend: Installed, stack: LocalStack) -> None:
    env = {**stack.credentials, "AWS_ENDPOINT_URL": stack.endpoint}
    name = ("--stack", stack.deployed.stack)
    shown = backend.run("fairlane", "tenants", "show", "--tenant", TENANT, *name, env=env).stdout
    assert "the deployment's" in shown
    for command in ("dlq", "dispatches", "effects", "events"):
        assert backend.run("fairlane", command, "list", "--json", *name, env=env).stdout


def test_the_backends_wheel_calls_the_api_too(backend: Installed, api: Mapping[str, str]) -> None:
    backend.run("fairlane", "lanes", "--once", "--json", env=api)
    assert backend.has("handlers.web.openapi_build")
    program = "from handlers.web.openapi_document import *; import handlers.web as w, pathlib; "
    program += "print((pathlib.Path(w.__file__).parent / 'openapi.json').is_file())"
    assert backend.run("python", "-c", program).stdout == "True\n"

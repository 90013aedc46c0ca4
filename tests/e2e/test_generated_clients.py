"""Clients that generators make from the document that the API serves, against the local stack, and
what linters say of it (C87)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from handlers.aws.job_store import DynamoStore
from handlers.jobs.transitions.quotas import set_slots
from handlers.jobs.words.job import Lane
from handlers.jobs.words.record_schema import RecordSchema
from handlers.testing.world import memory_world
from scripts.local import airports
from scripts.local.stack import LocalStack

PROGRAMS: Final = Path(__file__).parent / "clients"
MADE: Final = Path(sys.prefix) / "clients"
"""An environment of the generators and linters, which `make check` makes."""
NODE_MODULES: Final = MADE / "node_modules"
QUIET: Final = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true", "CI": "true"}
TENANT: Final = "generated-clients"
IDS: Final = ("007", "07", "Ä b")
ABSENT: Final = ("gone", "no/such")
MANY: Final = tuple(f"many{number}" for number in range(150))
"""More than a small job has. The tenant has no slot in the bulk lane, so the job is held."""
SEEN: Final = {
    "same": True,
    "ended": ["SUCCEEDED", len(IDS), len(ABSENT)],
    "listed": [True],
    "items": sorted(ABSENT),
    "held": "QUEUED",
    "cancelled": "CANCELLED",
}
SDK: Final = """export default {
  input: "openapi.json",
  output: { path: "sdk", importFileExtension: ".ts" },
  plugins: ["@hey-api/client-fetch", "@hey-api/typescript", "@hey-api/sdk"],
  logs: { level: "error", file: false },
};
"""
TYPED: Final = (
    *("--noEmit", "--strict", "--target", "es2023", "--lib", "es2023,dom,dom.iterable"),
    *("--module", "nodenext", "--allowImportingTsExtensions", "--verbatimModuleSyntax"),
)


def run(folder: Path, *command: str | Path) -> str:
    """What it printed. Fails with what it said."""
    assert Path(command[0]).exists(), "make check makes the environment of the generators"
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={"PATH": f"{Path(sys.prefix) / 'bin'}:/usr/bin:/bin", "HOME": str(folder), **QUIET},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def served(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the document as the API serves it, as ``openapi.json``."""
    folder = tmp_path_factory.mktemp("served")
    document: Any = stack.api.call("GET", "/v1/openapi.json", tenant=TENANT).body
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def arguments(stack: LocalStack) -> tuple[str, ...]:
    """Address, token and ids, for a tenant with some records and no slot in the bulk lane."""
    some = list(airports.airports_by_tenant()["islands"].values())[: len(IDS)]
    tables = stack.deployed.outputs
    airports.load(
        stack.clients.dynamodb,
        tables["RecordsTable"],
        tenants={TENANT: dict(zip(IDS, some, strict=True))},
    )
    store: Any = DynamoStore(
        stack.clients.dynamodb,
        control_table=tables["ControlTable"],
        records_table=tables["RecordsTable"],
        schema=RecordSchema(),
    )
    set_slots(replace(memory_world(), store=store), TENANT, Lane.BULK, 0)
    given = (json.dumps(each) for each in (IDS, ABSENT, MANY))
    return (stack.api.url, stack.issuer.token(TENANT), *given)


def test_c87_a_client_in_python(served: Path, arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("post_hooks: []\n")
    shutil.copy(PROGRAMS / "with_python.py", tmp_path)
    generator = MADE / "bin" / "openapi-python-client"
    made = ("--output-path", "made_client", "--meta", "none", "--config", "config.yaml")
    run(
        tmp_path,
        generator,
        "generate",
        "--path",
        served / "openapi.json",
        *made,
        "--fail-on-warning",
    )
    printed = run(tmp_path, MADE / "bin" / "python", "with_python.py", *arguments)
    assert json.loads(printed) == SEEN


@pytest.fixture(scope="module")
def typescript(served: Path) -> Path:
    """A folder with the programs in TypeScript and what two generators made for them."""
    for name in ("with_fetch.ts", "with_sdk.ts"):
        shutil.copy(PROGRAMS / name, served)
    (served / "package.json").write_text('{"type": "module"}')
    (served / "sdk.config.mjs").write_text(SDK)
    (served / "node_modules").symlink_to(NODE_MODULES)
    commands = NODE_MODULES / ".bin"
    run(served, commands / "openapi-typescript", "openapi.json", "--output", "schema.d.ts")
    run(served, commands / "openapi-ts", "--file", "sdk.config.mjs")
    return served


def test_c87_clients_in_typescript_have_the_types_that_programs_use(typescript: Path) -> None:
    run(typescript, NODE_MODULES / ".bin" / "tsc", *TYPED, "with_fetch.ts", "with_sdk.ts")


@pytest.mark.parametrize("program", ["with_fetch.ts", "with_sdk.ts"])
def test_c87_a_client_in_typescript(
    typescript: Path, arguments: tuple[str, ...], program: str
) -> None:
    node = Path(sys.prefix) / "bin" / "node"
    assert json.loads(run(typescript, node, program, *arguments)) == SEEN


def test_c87_two_linters_find_nothing(served: Path) -> None:
    redocly = (NODE_MODULES / ".bin" / "redocly", "lint", "openapi.json", "--format", "json")
    found = json.loads(run(served, *redocly))
    assert found["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}, found["problems"]
    assert "OK" in run(served, MADE / "bin" / "openapi-spec-validator", "openapi.json")

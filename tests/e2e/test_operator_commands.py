"""``fairlane tenants``, ``drift`` and ``effects`` as an operator runs them: what they print, and
that what they say has happened."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import pytest

from handlers.effects.documents import document_id
from handlers.effects.search_client import search_client
from handlers.settings import EffectSettings
from scripts.local.stack import LocalStack
from scripts.verify.outside import Receiver, Reply, serving
from scripts.verify.site import stand_still
from tests.support.shown import INDEX, Shown, run_by

SMALL: Final = 5
"""Records of a job that a function runs; there is no worker for larger ones, so they wait."""
PROGRAM: Final = """
import functools, pathlib, sys
from fairlane_client.cli import main
from scripts.local import stack, target
root = pathlib.Path(sys.argv.pop(1))
stack.LocalStack = functools.partial(stack.LocalStack, root=root)
target.StackFolder = functools.partial(target.StackFolder, root=root)
main()
"""
"""The command, for a stack whose state is kept apart from the checkout's."""


@dataclass
class Webhook(Receiver):
    """Takes notices, or has none of it."""

    down: bool = False

    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Reply:
        if self.down:
            return Reply(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", b"not now")
        return super().answer(method, path, headers, body)


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    webhook = Webhook()
    with serving(webhook):
        yield webhook


@pytest.fixture(scope="module")
def stack(stacks: Path, webhook: Webhook) -> Iterator[LocalStack]:
    settings = {
        "limits": {"small_max_items": SMALL, "max_effect_tries": 2},
        "timing": {
            "effect_grace": 1,
            "effect_claim": 15,
            "effect_retry_base": 0.5,
            "effect_retry_cap": 1,
        },
        "effects": {
            "webhook_url": f"{webhook.url}/told",
            "webhook_secret": "of this test and nothing else",
            "webhook_loopback": True,
        },
    }
    made = LocalStack(
        "operators", root=stacks, settings=settings, workers=0, records=False, search=True
    )
    with made as running:
        stand_still(running)
        yield running


Fairlane = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def fairlane(stack: LocalStack, stacks: Path) -> Fairlane:
    def run(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", PROGRAM, str(stacks), *arguments, "--name", stack.name]
        environment = {**os.environ, "COLUMNS": "200"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == status, done.stdout + done.stderr
        return done

    return run


def call(stack: LocalStack, tenant: str, method: str, path: str, body: object = None) -> Any:
    return stack.api.call(method, path, tenant=tenant, body=body).body


def submit(stack: LocalStack, tenant: str, subject: str, count: int = SMALL + 1) -> dict[str, Any]:
    """A job over so many records, or the problem."""
    body = {
        "operation": "set_fields",
        "subject": subject,
        "params": {"fields": {"seen": True}},
        "ids": [f"r{number}" for number in range(count)],
    }
    answer: dict[str, Any] = call(stack, tenant, "POST", "/v1/jobs", body)
    return answer


def put(stack: LocalStack, tenant: str, id_: str, version: int) -> None:
    item = {"tenant": {"S": tenant}, "id": {"S": id_}, "version": {"N": str(version)}}
    table = stack.deployed.outputs["RecordsTable"]
    stack.clients.dynamodb.put_item(TableName=table, Item=item)


def recovered(stack: LocalStack, holds: Callable[[], bool]) -> None:
    """Until that holds, do what the schedule does every minute. The looks are counted only so that
    what never happens ends the run."""
    functions = stack.clients.lambda_.list_functions()["Functions"]
    [name] = [each["FunctionName"] for each in functions if "Recovery" in each["FunctionName"]]
    for _ in range(2000):
        if holds():
            return
        stack.clients.lambda_.invoke(FunctionName=name, Payload=b"{}")
        time.sleep(0.3)
    raise AssertionError("it never holds")


def test_a_tenant_gets_limits_of_its_own_and_held_jobs_go_on(
    stack: LocalStack, fairlane: Fairlane
) -> None:
    of = ("--tenant", "limited")

    def waits(job: dict[str, Any]) -> object:
        return call(stack, "limited", "GET", f"/v1/jobs/{job['id']}").get("waiting_reason")

    shown = fairlane("tenants", "show", *of).stdout
    assert "the deployment's" in shown
    assert "its own" not in shown
    assert "--new" in fairlane("tenants", "set", *of, "--bulk", "1", status=2).stderr
    fairlane("tenants", "set", *of, "--new", "--bulk", "1", "--max-active", "3")
    first, second, third = (submit(stack, "limited", f"s{number}") for number in range(3))
    assert (waits(first), waits(second)) == (None, "tenant_limit")
    assert submit(stack, "limited", "s3")["code"] == "too_many_jobs"

    said = json.loads(fairlane("tenants", "set", *of, "--bulk", "2", "--json").stdout)
    assert said["lanes"]["bulk"] == {"count": 2, "held": 1, "limit": 2, "own": True}
    assert said["active"] == {"count": 3, "limit": 3, "own": True}
    assert (waits(second), waits(third)) == (None, "tenant_limit")

    assert "--bulk" in fairlane("tenants", "set", *of, "--bulk", "none", status=2).stderr
    shown = fairlane("tenants", "set", *of, "--max-active", "default").stdout
    assert "its own" in shown  # the bulk lane's limit
    assert submit(stack, "limited", "s3")["waiting_reason"] == "tenant_limit"


def test_drift_is_shown_and_repaired(stack: LocalStack, fairlane: Fairlane) -> None:
    tenant, index = "drifting", EffectSettings().search_index
    for id_, version in (("fine", 3), ("missing", 3), ("stale", 3)):
        put(stack, tenant, id_, version)
    with search_client(stack.state.search_url, credentials=None, region=None) as engine:
        for id_, version in (("fine", 3), ("stale", 2), ("extra", 1)):
            document = {"tenant": tenant, "id": id_, "version": version}
            options = {"version": version, "version_type": "external"}
            place = document_id(tenant, id_)
            engine.index(index=index, id=place, body=document, params=options)

        shown = fairlane("drift", "--tenant", tenant, status=1).stdout
        assert "3 records, 3 documents" in shown
        for part in ("'missing' (table 3, index -)", "'stale' (table 3, index 2)", "'extra'"):
            assert part in shown
        assert "'fine'" not in shown
        repair = fairlane("drift", "--tenant", tenant, "--repair", "--json", status=1)
        said = json.loads(repair.stdout)
        assert [said[kind] for kind in ("missing", "stale", "extra")] == [1, 1, 1]
        [job] = said["jobs"]
        ended = f"/v1/jobs/{job}"
        recovered(
            stack, lambda: call(stack, tenant, "GET", ended)["state"] in {"SUCCEEDED", "FAILED"}
        )
        assert "no drift" in fairlane("drift", "--tenant", tenant).stdout
        ids = [document_id(tenant, id_) for id_ in ("fine", "missing", "stale", "extra")]
        found = engine.mget(body={"ids": ids}, index=index)["docs"]
    assert [doc["found"] and doc["_source"]["version"] for doc in found] == [3, 3, 3, False]


@pytest.mark.parametrize("shown", run_by(INDEX), ids=lambda each: each.words)
def test_a_command_about_the_index_does_what_its_page_says(stack: LocalStack, shown: Shown) -> None:
    """As it stands there: the stack of the pages is called as this one is."""
    fairlane = Path(sys.executable).with_name("fairlane")
    calling = {"FAIRLANE_URL": stack.api.url, "FAIRLANE_TOKEN": stack.issuer.token("acme")}
    done = subprocess.run(
        [fairlane, *shlex.split(shown.words)[1:]],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **stack.credentials, **stack.addresses, **calling},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (done.stdout + done.stderr).strip()


def test_parked_effects_are_shown_and_run_again(
    stack: LocalStack, fairlane: Fairlane, webhook: Webhook
) -> None:
    put(stack, "telling", "r0", 1)
    webhook.down = True
    job = str(submit(stack, "telling", "told", count=1)["id"])

    def now() -> Any:
        return call(stack, "telling", "GET", f"/v1/jobs/{job}")

    def parked() -> int:
        return int(now().get("effects", {}).get("parked", 0))  # there are none before its chunk

    recovered(stack, lambda: parked() == 1)
    [row] = json.loads(fairlane("effects", "list", "--job", job, "--json").stdout)["effects"]
    assert (row["tenant"], row["state"], row["tries"]) == ("telling", "parked", 2)
    shown = fairlane("effects", "list").stdout
    for part in ("1 parked, 0 open", job, "webhook", "503"):
        assert part in shown
    assert parked() == 1  # looking changes nothing

    webhook.down = False
    said = fairlane("effects", "replay", "--job", job).stdout
    assert said == "1 effects will run again within about a minute\n"
    recovered(stack, lambda: now()["state"] == "SUCCEEDED")
    assert webhook.keys[f"{job}:0"]
    assert "0 parked, 0 open" in fairlane("effects", "list").stdout
    assert json.loads(fairlane("effects", "replay", "--json").stdout) == {"replayed": 0}


def test_who_has_a_subject_is_shown_instead_of_a_refusal(
    stack: LocalStack, fairlane: Fairlane
) -> None:
    holder = submit(stack, "waiting", "taken")
    asked = ("jobs", "submit", "--tenant", "waiting", "--subject", "taken", "--id", "1", "--json")
    what = ("--operation", "set_fields", "--params", '{"fields": {"seen": true}}')
    error = json.loads(fairlane(*asked, *what, status=1).stdout)["error"]
    assert (error["code"], error["active_job"]) == ("subject_busy", holder["id"])
    found = fairlane(*asked, *what, "--on-conflict", "return_existing")
    shown = json.loads(found.stdout)
    assert (shown["id"], shown["existing"], shown["total"]) == (holder["id"], True, SMALL + 1)
    assert "nothing was created" in found.stderr

"""A worker of the last release beside one of this version, on one local stack.

``python -m scripts.verify.two_versions`` builds the release's wheel from its commit, which takes
the whole history, so no test runs it. Exit status 1: something is not as expected; 2: trouble.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fairlane_client.commands.output import console
from handlers.aws.attributes import decode
from handlers.jobs.storage.control_table import job_key
from handlers.jobs.words.states import State
from handlers.jobs.words.writes import Item
from scripts.checks.released.source import VERSION, NoHistory, unpack
from scripts.load import own
from scripts.load.ledger import Ledger
from scripts.local.errors import LocalError
from scripts.local.processes import Process
from scripts.local.settings import Chosen
from scripts.local.stack import LocalStack
from scripts.local.steps import Steps

from .framework import Expectation
from .listing import listing
from .site import PROTOCOL

TENANT: Final = "two-versions"
MANY: Final = 300
"""Records of a job."""
NEW: Final = "new_here"
"""An operation that the release does not have."""
WITHIN_S: Final = 300
LOOK_S: Final = 0.1
SETTINGS: Final[Chosen] = {
    **PROTOCOL,
    "limits": {"chunk_size": 5, "small_max_items": 1},
    "bulk_lane": {"slots": 1, "poll_seconds": 1},
}
OPERATION: Final = '''"""An operation of a newer version."""

from fairlane.operations import Change, Fields, Outcome, Parameters, operation


class NewHere(Parameters):
    pass


@operation("new_here", NewHere, writes=lambda _: frozenset({"n"}))
def new_here(record: Fields, _parameters: NewHere) -> Outcome:
    """Add one to n."""
    return Change({"n": int(str(record["n"])) + 1})
'''


def wheel_of(release: Path, folder: Path) -> Path:
    """The release's wheel, unpacked in ``folder``: what a worker of it imports."""
    build = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(  # noqa: S603  our own interpreter
        [sys.executable, "-m", *build, "--wheel-dir", str(folder), str(release)], check=True
    )
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(folder / "installed")
    return folder / "installed"


@dataclass
class Site:
    stack: LocalStack
    released: Path
    """What a worker of the release imports."""

    # --- workers ------------------------------------------------------------------------------

    def start_released(self) -> Process:
        [worker] = self.stack.workers.start(code=self.released, env={"FAIRLANE_OPERATIONS": None})
        return worker

    def start_this(self) -> Process:
        [worker] = self.stack.workers.start()
        return worker

    def stop(self) -> None:
        self.stack.workers.stop()

    # --- jobs ---------------------------------------------------------------------------------

    def submit(self, subject: str, *, operation: str = "adjust_number") -> str:
        """A bulk job that adds one to each of its records."""
        ids = [f"{subject}-{number:04}" for number in range(MANY)]
        for id_ in ids:
            self.stack.clients.dynamodb.put_item(
                TableName=self.stack.deployed.outputs["RecordsTable"],
                Item={"tenant": {"S": TENANT}, "id": {"S": id_}, "n": {"N": "0"}},
            )
        params: dict[str, Any] = {} if operation == NEW else {"field": "n", "add": 1}
        body = {"operation": operation, "subject": subject, "ids": ids, "params": params}
        answer = self.stack.api.call("POST", "/v1/jobs", tenant=TENANT, body=body)
        if "id" not in answer.body:
            raise LocalError(f"the job was not created: {answer.body}")
        return str(answer.body["id"])

    def item(self, job_id: str) -> Item:
        key = job_key(job_id)
        found = self.stack.clients.dynamodb.get_item(
            TableName=self.stack.deployed.outputs["ControlTable"],
            Key={"pk": {"S": key.pk}, "sk": {"S": key.sk}},
            ConsistentRead=True,
        )
        return decode(found["Item"])

    def until(self, what: str, job_id: str, holds: Callable[[Item], bool]) -> Item:
        """Raises LocalError when it never comes to hold."""
        deadline = time.monotonic() + WITHIN_S
        while not holds(item := self.item(job_id)):
            if time.monotonic() > deadline:
                raise LocalError(f"{what}: not within {WITHIN_S} s; the job is {dict(item)}")
            time.sleep(LOOK_S)
        return item

    def ended(self, job_id: str) -> Item:
        return self.until("the job ends", job_id, lambda item: "finished_at" in item)

    def begun(self, job_id: str) -> Item:
        """At a checkpoint that is not its last."""
        return self.until("the job is begun", job_id, lambda item: item["position"] != 0)

    def once(self) -> bool:
        """Every record of every job was changed once."""
        rows = Ledger(self.stack).records({TENANT}).values()
        return bool(rows) and all(row.fields["n"] == 1 for row in rows)


def run(site: Site) -> Iterator[Expectation]:
    site.start_released()
    job = site.submit("read-by-the-release")
    yield _ended(f"a job of this version's API, run by a worker of {VERSION}", site.ended(job))

    job = site.submit("new-operation", operation=NEW)
    item = site.until(
        "it is left", job, lambda item: "not_understood_since" in item or "finished_at" in item
    )
    what = f"a job whose operation {VERSION} does not know, with only its worker"
    left = f"{item['state']}, attempt {item.get('attempt', 0)}"
    yield Expectation.equal(what, expected=f"{State.QUEUED}, attempt 0", saw=left)
    site.start_this()
    yield _ended("the same job, when a worker of this version runs beside it", site.ended(job))
    site.stop()

    dies = site.start_released()
    job = site.submit("begun-by-the-release")
    site.begun(job)
    dies.kill()
    site.start_this()
    yield _ended(
        f"a job that a worker of {VERSION} began, which was killed", site.ended(job), attempts=2
    )
    site.stop()

    dies = site.start_this()
    job = site.submit("begun-by-this-version")
    site.begun(job)
    dies.kill()
    site.start_released()
    what = f"rolled back: a job that this version began and {VERSION} goes on with"
    yield _ended(what, site.ended(job), attempts=2)
    site.stop()
    yield Expectation.equal("every record was changed once", expected=True, saw=site.once())


def _ended(what: str, item: Item, *, attempts: int = 1) -> Expectation:
    """attempts: at least so many."""
    saw = f"{item['state']}, {item['succeeded']} of {MANY} records, attempt {item['attempt']}"
    tried = item["attempt"]
    return Expectation.of(
        what,
        expected=f"{State.SUCCEEDED}, {MANY} of {MANY} records, attempt {attempts} or later",
        saw=saw,
        ok=(item["state"], item["succeeded"]) == (State.SUCCEEDED, MANY)
        and isinstance(tried, int)
        and tried >= attempts,
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as name, Steps() as steps:
        folder = Path(name)
        try:
            with steps.step(f"Building the wheel of {VERSION}"):
                (folder / "wheel").mkdir()
                released = wheel_of(unpack(folder / "release"), folder / "wheel")
        except (NoHistory, subprocess.CalledProcessError) as error:
            print(error, file=sys.stderr)
            return 2
        operations = folder / "newer_operations"
        operations.mkdir()
        (operations / "new_here.py").write_text(OPERATION, encoding="utf-8")
        settings = {**SETTINGS, "operations": str(operations)}
        stack = own.up("two-versions", steps=steps, settings=settings, workers=0, records=False)
        with own.taken_down(stack, steps=steps):
            seen = list(run(Site(stack, released)))
    console().print(listing(seen))
    return 0 if all(each.ok for each in seen) else 1


if __name__ == "__main__":
    sys.exit(main())

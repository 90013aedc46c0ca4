"""Every command of operators that a page shows, as it stands there, on a deployment with a dead
letter: those of the runbook, and those of the other pages."""

from __future__ import annotations

import importlib
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from typer.testing import CliRunner

from fairlane_client.commands.app import app
from handlers.aws.lane_queue import SqsLaneQueue
from handlers.jobs.words.job import Lane
from handlers.jobs.words.messages import message_for
from handlers.settings import EffectSettings
from tests.handlers.deployment import TENANT, Deployment
from tests.support import aws
from tests.support.operators import seen_by_operator
from tests.support.pages import PAGES, ROOT, blocks
from tests.support.shown import OPERATORS, Shown, run_by

COMMANDS: Final = run_by(OPERATORS)
HERE: Final = [each for each in COMMANDS if "operations" not in each.words]
MODULES: Final = ("audit", "dispatches", "dlq", "effects", "events", "rates", "tenants")
"""Of the commands that look at a deployment."""
SECRET: Final = "of this test and nothing else"


class Settings:
    """What a command reads of the deployment's."""

    effects = EffectSettings(notify=True, webhook_secret=SECRET, webhook_loopback=True)


@dataclass(frozen=True)
class Letter:
    """The one in the small lane's queue of dead letters."""

    job: str
    message: str


@pytest.fixture
def dead(stack: Deployment, monkeypatch: pytest.MonkeyPatch) -> Letter:
    sqs = stack.made.sqs
    urls = {lane: aws.create_queue(sqs, f"{lane.value}-dead", visibility=30) for lane in Lane}
    letters = {lane: SqsLaneQueue(sqs, url) for lane, url in urls.items()}
    here = seen_by_operator(stack.world, dead_letters=letters, settings=Settings())
    for module in MODULES:
        command = importlib.import_module(f"scripts.commands.{module}")
        monkeypatch.setattr(command, "deployment", lambda *_: here)
    job = stack.job(stack.created(stack.fill(1)))
    assert not letters[Lane.SMALL].send([message_for(job)])
    [there] = sqs.receive_message(QueueUrl=urls[Lane.SMALL], VisibilityTimeout=0)["Messages"]
    return Letter(job.id, there["MessageId"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the commands run: the settings, and the operations of pages."""
    (tmp_path / "cdk.json").write_bytes((ROOT / "cdk.json").read_bytes())
    (tmp_path / "our_operations").mkdir()
    for page, name in (("operations", "raise_price"), ("how-to/lookup-table", "convert")):
        text = PAGES[f"docs/{page}.md"].read_text(encoding="utf-8")
        source = blocks(text, "python")[0]
        (tmp_path / "our_operations" / f"{name}.py").write_text(source, encoding="utf-8")
    [table] = blocks(text, "csv")
    (tmp_path / "rates.csv").write_text(table, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(words: list[str], status: int = 0) -> str:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == status, result.output
    return result.output


def words_of(each: Shown, dead: Letter) -> list[str]:
    """With values of this deployment for the words in capitals."""
    given = {"TENANT": TENANT, "ID": dead.job, "MESSAGE": dead.message}
    return [given.get(word, word) for word in shlex.split(each.words)[1:]]


def test_the_commands_are_found() -> None:
    assert {each.page for each in COMMANDS} >= {"docs/runbook.md", "docs/how-to/dead-letters.md"}
    assert {each.words.split()[1] for each in COMMANDS} == {*MODULES, "cost", "operations"}


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("shown", HERE, ids=lambda each: each.words)
def test_a_command_does_what_it_says(dead: Letter, shown: Shown) -> None:
    words = words_of(shown, dead)
    if words[1] == "put-back":
        run(["dlq", "set-aside", "--message", dead.message, "--why", "of a test"])
    assert run(words).strip()


def test_operations_are_checked_listed_and_tried(folder: Path) -> None:
    """In processes of their own: an operation that is declared here would be every test's."""
    fairlane = Path(sys.executable).with_name("fairlane")
    for each in COMMANDS:
        if each not in HERE:
            words = shlex.split(each.words)[1:]
            done = subprocess.run(
                [fairlane, *words], cwd=folder, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, done.stderr
            assert any(word in done.stdout for word in ("10.25", "9.2", "raise_price"))


@pytest.mark.usefixtures("dead")
def test_a_command_that_is_not_there_is_seen() -> None:
    for wrong in (["dlq", "explode"], ["effects", "list", "--sideways"]):
        run(wrong, status=2)

"""What the README, the tutorial and other pages show runs as it stands there, on a local stack."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from typer.testing import CliRunner

from fairlane_client import Client, JobView, NewJob, NewUpload
from fairlane_client.commands.app import app
from handlers.effects.secret import tenant_key
from handlers.jobs.words.limits import MAX_CHUNK
from scripts.local import airports
from scripts.local.stack import LocalStack
from tests.support.pages import PAGES, ROOT, blocks, scripts
from tests.support.shown import LOCAL, Shown, run_by

TUTORIAL: Final = PAGES["docs/tutorial.md"].read_text(encoding="utf-8")
README: Final = PAGES["README.md"].read_text(encoding="utf-8")
CLONED: Final = (
    *("Makefile", "app.py", "cdk.json", "pyproject.toml", "client/pyproject.toml"),
    *("fairlane", "handlers", "infra", "requirements"),
)
"""What the pages' commands need of a clone of the repository."""
DOWN: Final = "make down"
TENANT: Final = "pages"
SECRET: Final = "a secret of this test"
MANY: Final = 5000
TENANTS: Final = ("islands", "africa", "americas")
"""Of the tutorial."""
ALL: Final = r"SUCCEEDED: ([\d,]+) of \1 records changed"


def older(folder: Path) -> None:
    """Than the environment's stamp, as in a clone in which ``make`` has made the environment."""
    for file in folder.rglob("*"):
        os.utime(file, (0, 0))


@pytest.fixture(scope="module")
def clone(stack: LocalStack, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a clone of the repository, with this environment, whose default stack is that
    of the tests."""
    folder = tmp_path_factory.mktemp("clone")
    for name in CLONED:
        (folder / name).parent.mkdir(exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    older(folder)
    (folder / ".venv").symlink_to(sys.prefix)
    (folder / ".fairlane" / "local").mkdir(parents=True)
    (folder / ".fairlane" / "local" / "default").symlink_to(stack.folder.path)
    return folder


def shell(folder: Path, script: str, **env: str) -> str:
    """What it prints, on both outputs."""
    done = subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        cwd=folder,
        env={**os.environ, "PATH": f".venv/bin:{os.environ['PATH']}", **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


# --- pages that are one script ------------------------------------------------------------------


@pytest.fixture
def tutorial(clone: Path, stack: LocalStack) -> Iterator[Path]:
    """The clone with the files of the tutorial, and its records as they were at the stack's start:
    other tests change some. Its step 4 changes the stack."""
    airports.load(
        stack.clients.dynamodb,
        stack.deployed.outputs["RecordsTable"],
        tenants={name: airports.airports_by_tenant()[name] for name in TENANTS},
    )
    operation, client = blocks(TUTORIAL, "python")
    (clone / "our_operations").mkdir()
    (clone / "our_operations" / "height_class.py").write_text(operation, encoding="utf-8")
    (clone / "client.py").write_text(client, encoding="utf-8")
    for name, language in (("own.json", "json"), ("client.ts", "ts")):
        [text] = blocks(TUTORIAL, language)
        (clone / name).write_text(text, encoding="utf-8")
    yield clone
    stack.attach()


def whole(page: str, *, beginning: str) -> str:
    """The scripts of a page from one to ``make down``, without that: it would end the stack that
    other tests use. They end stacks of their own."""
    found = scripts(page)
    [first] = [number for number, each in enumerate(found) if each.startswith(beginning)]
    script, down, _ = "\n".join(found[first:]).partition(f"{DOWN}\n")
    assert down
    return script


def test_the_tutorial_from_its_first_command_to_its_last(tutorial: Path) -> None:
    said = shell(tutorial, whole(TUTORIAL, beginning="make up"))
    assert "already up" in said
    assert "the app is deployed" in said
    found = list(re.finditer(ALL, said))
    assert len(found) == 3, said
    first, africa, americas = found
    assert first[1] == "2"
    assert min(int(each[1].replace(",", "")) for each in (africa, americas)) > 100
    assert re.search(r'height +"high"', said)
    assert re.search(r'height +"low"', said)
    assert '"subject":"curl"' in said.replace(": ", ":")
    assert said.count("SUCCEEDED 2\n") == 2  # in Python and in TypeScript
    wrong = [*tutorial_try(), "--record", '{"elevation": "?"}']
    done = subprocess.run(wrong, cwd=tutorial, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "not a number" in done.stdout


def tutorial_try() -> list[str]:
    """``fairlane operations try`` of the page, without the records."""
    [block] = [each for each in scripts(TUTORIAL) if "operations try" in each]
    words = shlex.split(block.replace("\\\n", " "))
    words = words[words.index("try") - 2 :]
    return words[: words.index("--record")]


def test_what_the_readme_shows_of_its_use(clone: Path) -> None:
    said = shell(clone, whole(README, beginning="make up"))
    assert len(re.findall(ALL, said)) == 2
    assert "set_fields" in said


def test_down_is_what_it_says_where_nothing_is_up(clone: Path) -> None:
    """The pages' last command; other tests take stacks of their own down."""
    default = clone / ".fairlane" / "local" / "default"
    there = default.readlink()
    default.unlink()
    try:
        assert "was not up" in shell(clone, DOWN)
    finally:
        default.symlink_to(there)


# --- one command at a time ----------------------------------------------------------------------

SINGLE: Final = [
    each for each in run_by(LOCAL) if each.page not in {"docs/tutorial.md", "README.md"}
]
JOBS: Final = [
    each for each in SINGLE if each.words.startswith(("fairlane jobs", "fairlane lanes"))
]


@pytest.fixture(scope="module")
def env(stack: LocalStack) -> dict[str, str]:
    return {"FAIRLANE_URL": stack.api.url, "FAIRLANE_TOKEN": stack.issuer.token(TENANT)}


@pytest.fixture(scope="module")
def client(env: Mapping[str, str]) -> Iterator[Client]:
    with Client(env["FAIRLANE_URL"], env["FAIRLANE_TOKEN"]) as made:
        yield made


Given = Callable[[Shown], list[str]]


@pytest.fixture
def given(
    client: Client, stack: LocalStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Given:
    """The words of a command, with what it names: files, an upload, a job that suits it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.csv").write_text("sku\n007\n7\n", encoding="utf-8")
    item: Any = {"tenant": {"S": TENANT}, "id": {"S": "007"}, "name": {"S": "no number"}}
    table = stack.deployed.outputs["RecordsTable"]
    stack.clients.dynamodb.put_item(TableName=table, Item=item)

    def job_for(verb: str, *options: str) -> JobView:
        """One that goes on; one that failed before its last record, so that all of it can be tried
        again; or one whose only record failed."""
        goes_on = verb == "cancel"
        more = MANY if goes_on else 2 * MAX_CHUNK if (verb, options) == ("retry", ()) else 0
        job = NewJob(
            operation="adjust_number",
            subject=tmp_path.name,
            params={"field": "name", "add": 1},
            ids=["007", *(f"n{number}" for number in range(more))],
            tolerated_failure_percent=100 if goes_on else 0,
        )
        made = client.submit(job)
        return made if goes_on else client.wait(made.id)

    def words(each: Shown) -> list[str]:
        found = shlex.split(each.words)[1:]
        for number, word in enumerate(found):
            if word in {"ID", "JOB"}:
                found[number] = job_for(found[1], *found[number + 1 :]).id
            elif word == "UPLOAD":
                file = tmp_path / "ids.csv"
                found[number] = client.upload(file, NewUpload(format="csv", column="sku"))
        return found

    return words


@pytest.mark.parametrize("shown", JOBS, ids=lambda each: each.words)
def test_a_command_about_jobs_does_what_it_says(
    shown: Shown, given: Given, env: Mapping[str, str]
) -> None:
    words = given(shown)
    done = CliRunner().invoke(app, words, env=dict(env))
    assert done.exit_code == 0, done.output
    if "list" not in words:  # of which there may be none
        assert done.output.strip()
    if "--to" in words:
        assert Path(words[words.index("--to") + 1]).stat().st_size > 0


def test_the_other_commands_do_what_they_say(clone: Path, env: Mapping[str, str]) -> None:
    values = {
        "API_URL": env["FAIRLANE_URL"],
        "TOKEN": env["FAIRLANE_TOKEN"],
        "NEW_SECRET": SECRET,
    }
    said = {
        each.words.split()[0]: shell(clone, each.command, **values)
        for each in SINGLE
        if each not in JOBS and not each.words.startswith("fairlane")
    }
    assert '"lanes"' in said["curl"]
    assert tenant_key(SECRET.encode(), "acme").decode() in said["printf"]
    for each in SINGLE:
        if each.words.startswith(("fairlane local", "fairlane token")):
            assert shell(clone, each.command).strip()

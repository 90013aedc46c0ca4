"""The project's own rules, and that each check of them can fail."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from scripts.checks import pins, tree
from tests.conftest import NetworkUsed

ROOT: Final = Path(__file__).parents[2]
FILES: Final = tree.tracked(ROOT)


def write(root: Path, name: str, text: str) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Path(name)


# --- files ------------------------------------------------------------------------------------


def test_the_checks_see_the_project() -> None:
    assert {Path("pyproject.toml"), Path("handlers/settings.py")} <= set(FILES)


def test_modules_are_short() -> None:
    assert tree.long_modules(ROOT, FILES) == []


def test_a_long_module_is_found(tmp_path: Path) -> None:
    short = write(tmp_path, "handlers/short.py", "x = 1\n" * 449)
    long = write(tmp_path, "handlers/long.py", "x = 1\n" * 450)
    test = write(tmp_path, "tests/long.py", "x = 1\n" * 450)
    assert tree.long_modules(tmp_path, [short, long, test]) == [
        "handlers/long.py: 450 lines, must be under 450"
    ]


def test_no_file_names_a_machine_or_a_registry() -> None:
    assert tree.machine_names(ROOT, FILES) == []


@pytest.mark.parametrize("folder", ["work", "root", "home/anna", "Users/anna"])
def test_a_machine_path_is_found(tmp_path: Path, folder: str) -> None:
    name = write(tmp_path, "docs/a.md", f"fine\nsee /{folder}/main\n")
    assert tree.machine_names(tmp_path, [name]) == [f"docs/a.md:2: /{folder}/"]


@pytest.mark.parametrize("host", ["pypi" + ".org", "files.pythonhosted" + ".org", "npmjs" + ".com"])
def test_a_registry_host_is_found(tmp_path: Path, host: str) -> None:
    name = write(tmp_path, "lock.txt", f"--index-url https://{host}/simple\n")
    assert tree.machine_names(tmp_path, [name]) == [f"lock.txt:1: {host}"]


def test_ordinary_paths_and_addresses_pass(tmp_path: Path) -> None:
    name = write(tmp_path, "a.md", "docs/work/x, https://example.com/root/x, ~/root/x, pypi.tsv\n")
    assert tree.machine_names(tmp_path, [name]) == []


def test_without_git_the_tree_is_walked(tmp_path: Path) -> None:
    write(tmp_path, "handlers/a.py", "")
    write(tmp_path, ".venv/lib/b.py", "")
    assert tree.tracked(tmp_path) == [Path("handlers/a.py")]


# --- where tests lie ---------------------------------------------------------------------------

NO_TEST_OF_ITS_NAME: Final = {
    "handlers/jobs/words/metrics.py": "names only",
    "handlers/jobs/words/operation.py": "values without behaviour",
    "handlers/jobs/words/ports.py": "protocols only; tests/contract holds each adapter to them",
    "handlers/jobs/words/upload.py": "values without behaviour",
}


def test_nothing_imports_from_a_test() -> None:
    assert tree.imports_from_tests(ROOT, FILES) == []


@pytest.mark.parametrize(
    "line",
    [
        "from tests.unit.test_a import b",
        "from .test_a import b",
        "from . import test_a",
        "import tests.unit.test_a as b",
        "if b:\n    from ..unit.test_a import b",
    ],
)
def test_an_import_from_a_test_is_found(tmp_path: Path, line: str) -> None:
    name = write(tmp_path, "tests/contract/x.py", f"from tests.support import b\n{line}\n")
    assert tree.imports_from_tests(tmp_path, [name]) == [f"{name}: imports from test_a"]


def test_every_rule_has_a_test_of_its_name() -> None:
    assert tree.rules_without_test(FILES) == sorted(NO_TEST_OF_ITS_NAME)


def test_every_rules_test_is_named_after_a_rule() -> None:
    assert tree.tests_without_rule(FILES) == []


def test_a_rule_without_its_test_and_a_test_without_its_rule_are_found() -> None:
    files = [
        Path(name)
        for name in (
            "handlers/jobs/__init__.py",
            "handlers/jobs/words/job.py",
            "handlers/jobs/words/states.py",
            "tests/unit/jobs/words/test_job.py",
            "tests/unit/jobs/words/test_job_counts.py",
            "tests/unit/jobs/words/test_jobs.py",
            "tests/unit/jobs/storage/test_states.py",
            "tests/unit/jobs/test_cases_jobs.py",
        )
    ]
    assert tree.rules_without_test(files) == ["handlers/jobs/words/states.py"]
    assert tree.tests_without_rule(files) == [
        "tests/unit/jobs/storage/test_states.py",
        "tests/unit/jobs/words/test_jobs.py",
    ]


# --- requirements -----------------------------------------------------------------------------


def requirements(name: str) -> str:
    return (ROOT / "requirements" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["setup", "lambda", "dev", "bench", "docs", "clients"])
def test_what_is_asked_for_is_locked(name: str) -> None:
    asked = pins.asked(requirements(f"{name}.in"))
    locked = pins.locked(requirements(f"{name}.txt"))
    assert asked
    assert asked.items() <= locked.items(), "make lock"


def test_the_command_runs_on_what_it_is_developed_on() -> None:
    asked = pins.asked(requirements("command.in"))
    assert asked.items() <= pins.locked(requirements("dev.txt")).items(), "make lock"
    shipped = pins.locked(requirements("lambda.txt")).keys()
    assert {"typer", "rich"}.isdisjoint(shipped)


def test_developers_run_what_ships() -> None:
    shipped, here = (pins.locked(requirements(f"{name}.txt")) for name in ("lambda", "dev"))
    assert shipped.items() <= here.items(), "make lock"
    assert {"moto", "pytest", "ministack", "aws-cdk-lib"}.isdisjoint(shipped)


def test_what_the_benches_compare_with_changes_nothing_that_is_there() -> None:
    compared, here = (pins.locked(requirements(f"{name}.txt")) for name in ("bench", "dev"))
    assert "celery" in compared.keys() - here.keys()
    assert {name: here[name] for name in compared.keys() & here.keys()}.items() <= compared.items()


@pytest.mark.parametrize("line", ["boto3  # AWS", "boto3>=1  # AWS", "boto3==1.2.3"])
def test_a_loose_or_unexplained_requirement_is_found(line: str) -> None:
    with pytest.raises(ValueError, match="boto3"):
        pins.asked(f"# fine\n{line}\n")


@pytest.mark.parametrize(
    "block", ["boto3==1.2.3\n    # via x", "boto3>=1 \\\n    --hash=sha256:ab"]
)
def test_an_unlocked_requirement_is_found(block: str) -> None:
    with pytest.raises(ValueError, match="boto3"):
        pins.locked(f"attrs==1 \\\n    --hash=sha256:ab\n{block}\n")


# --- imports ----------------------------------------------------------------------------------

APP_MAY_IMPORT: Final = frozenset({"fairlane", "infra", "aws_cdk", "cdk_nag"})

JOBS: Final = (
    *("execution", "lifecycle", "selection", "results", "effects"),
    *("transitions", "events", "storage", "words"),
)
SKELETON: Final = (
    *(
        f"handlers/{name}.py"
        for name in ("api", "small_lane", "bootstrap", "settings", "cold_start")
    ),
    *(f"handlers/{name}/x.py" for name in ("web", "aws", "effects", "testing", "operations")),
    *(f"{name}/__init__.py" for name in ("infra", "scripts")),
    "fairlane/operations.py",
    *(f"scripts/{name}/x.py" for name in ("demo", "verify")),
    *(f"handlers/jobs/{name}/x.py" for name in JOBS),
    *(
        f"fairlane_client/{name}.py"
        for name in (
            *(
                "cli",
                "commands/x",
                "client",
                "idfiles",
                "waiting",
                "downloads",
                "uploads",
                "listing",
            ),
            *("transport", "models", "requests", "exact", "words", "problems"),
        )
    ),
)
FORBIDDEN: Final = {
    "handlers/api.py": "handlers.small_lane",
    "handlers/bootstrap.py": "handlers.api",
    "handlers/effects/x.py": "handlers.bootstrap",
    "handlers/jobs/words/web.py": "handlers.web.x",
    "handlers/aws/x.py": "handlers.testing.x",
    "handlers/testing/x.py": "handlers.effects.x",
    "handlers/settings.py": "handlers.aws.x",
    "handlers/operations/x.py": "handlers.settings",
    "handlers/jobs/execution/x.py": "handlers.operations.x",
    "handlers/jobs/words/aws.py": "boto3",
    "handlers/jobs/words/environment.py": "os",
    "handlers/jobs/words/clock.py": "time",
    "handlers/jobs/lifecycle/x.py": "handlers.jobs.execution.x",
    "handlers/jobs/selection/x.py": "handlers.jobs.results.x",
    "handlers/jobs/results/x.py": "handlers.jobs.effects.x",
    "handlers/jobs/transitions/x.py": "handlers.jobs.lifecycle.x",
    "handlers/jobs/events/x.py": "handlers.jobs.transitions.x",
    "handlers/jobs/storage/x.py": "handlers.jobs.events.x",
    "handlers/jobs/words/x.py": "handlers.jobs.storage.x",
    "handlers/operations/aws.py": "botocore",
    "handlers/aws/stacks.py": "aws_cdk",
    "handlers/aws/stack.py": "infra",
    "infra/storage.py": "handlers.jobs.words.x",
    "infra/lane.py": "scripts",
    "fairlane/operations.py": "handlers.testing.x",
    "scripts/local/x.py": "scripts.verify.x",
    "scripts/load/x.py": "scripts.demo.x",
    "fairlane_client/transport.py": "handlers.jobs.words.x",
    "fairlane_client/commands/x.py": "boto3",
    "fairlane_client/problems.py": "scripts",
    "fairlane_client/models.py": "fairlane_client.client",
}
ALLOWED: Final = {
    "handlers/api.py": "handlers.bootstrap",
    "handlers/bootstrap.py": "handlers.effects.x",
    "handlers/effects/x.py": "handlers.aws.x",
    "handlers/aws/x.py": "handlers.jobs.words.x",
    "handlers/operations/x.py": "handlers.jobs.words.x",
    "handlers/settings.py": "handlers.jobs.words.timing",
    "infra/settings.py": "handlers.settings",
    "scripts/demo.py": "handlers.bootstrap",
    "scripts/cli.py": "fairlane_client.commands.x",
    "fairlane_client/commands/x.py": "fairlane_client.client",
}


def lint_imports(root: Path, imports: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The project's import contracts over a made-up tree with these imports."""
    for name in {*SKELETON, *imports, "handlers/jobs/words/timing.py"}:
        write(root, name, f"import {imports[name]}\n" if name in imports else "")
    for folder in {up for path in root.rglob("*.py") for up in path.parents if root in up.parents}:
        (folder / "__init__.py").touch()
    config = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    write(root, "pyproject.toml", config)
    command = "from importlinter.cli import lint_imports_command as c; c()"
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache", "--no-logo"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_import_contracts_let_the_intended_imports_pass(tmp_path: Path) -> None:
    result = lint_imports(tmp_path, ALLOWED)
    assert result.returncode == 0, result.stdout


def test_the_import_contracts_see_each_forbidden_import(tmp_path: Path) -> None:
    result = lint_imports(tmp_path, FORBIDDEN)
    assert result.returncode == 1
    unseen = {
        f"{name} -> {target}"
        for name, target in FORBIDDEN.items()
        if f"{name.removesuffix('.py').replace('/', '.')} -> {target}" not in result.stdout
    }
    assert not unseen, result.stdout


def test_a_new_module_of_handlers_has_to_be_placed(tmp_path: Path) -> None:
    result = lint_imports(tmp_path, {"handlers/surprise.py": "json"})
    assert result.returncode == 1
    assert "handlers.surprise" in result.stdout


def test_a_new_package_or_module_of_the_rules_has_to_be_placed(tmp_path: Path) -> None:
    result = lint_imports(tmp_path, {"handlers/jobs/surprise.py": "json"})
    assert result.returncode == 1
    assert "handlers.jobs.surprise" in result.stdout


def test_a_circle_among_the_rules_is_found_even_if_only_types_need_it(tmp_path: Path) -> None:
    one = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import two\n"
    write(tmp_path, "handlers/jobs/words/one.py", one)
    result = lint_imports(tmp_path, {"handlers/jobs/words/two.py": "handlers.jobs.words.one"})
    assert result.returncode == 1
    assert "handlers.jobs.words" in result.stdout


def test_app_imports_infra_only() -> None:
    app = ROOT / "app.py"
    assert not app.exists() or not tree.foreign_imports(app.read_text("utf-8"), APP_MAY_IMPORT)


def test_a_foreign_import_of_app_is_found() -> None:
    source = (
        "import json\nfrom infra.settings import S\ndef f():\n    from handlers.jobs import model\n"
    )
    assert tree.foreign_imports(source, APP_MAY_IMPORT) == ["handlers"]


# --- types ------------------------------------------------------------------------------------

USED_UNNAMED: Final = {"aws_cdk.cx_api"}
"""What ``App.synth`` answers with."""


def types_read_of_the_cdk() -> set[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    overrides = settings["tool"]["mypy"]["overrides"]
    [read] = [each["module"] for each in overrides if each.get("follow_imports") == "normal"]
    return set(read)


def test_types_are_read_of_the_cdk_modules_that_are_used() -> None:
    """Of the others they are not, which makes a check three times faster."""
    assert types_read_of_the_cdk() == tree.cdk_modules(ROOT, FILES) | USED_UNNAMED


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("from aws_cdk import Stack, aws_msk as msk", "aws_cdk.aws_msk"),
        ("import aws_cdk.aws_msk", "aws_cdk.aws_msk"),
        ("from aws_cdk.pipelines import CodePipeline", "aws_cdk.pipelines"),
        ("import aws_cdk as cdk\ncdk.aws_msk.CfnCluster", "aws_cdk.aws_msk"),
        ("import aws_cdk as core\ncore.aws_msk.CfnCluster", "aws_cdk.aws_msk"),
        ("import aws_cdk as cdk\ncdk.custom_resources.Provider", "aws_cdk.custom_resources"),
        ("import aws_cdk\naws_cdk.pipelines.CodePipeline", "aws_cdk.pipelines"),
    ],
)
def test_a_used_module_of_the_cdk_is_found(tmp_path: Path, line: str, module: str) -> None:
    found = tree.cdk_modules(tmp_path, [write(tmp_path, "infra/a.py", line)])
    assert found - {"aws_cdk"} == {module}
    assert module not in types_read_of_the_cdk()


# --- the tests' own surroundings --------------------------------------------------------------


def test_a_unit_test_opens_no_connection() -> None:
    with socket.socket() as mine, pytest.raises(NetworkUsed):
        mine.connect(("127.0.0.1", 9))


def test_no_test_finds_credentials() -> None:
    assert os.environ["AWS_SECRET_ACCESS_KEY"] == "testing"

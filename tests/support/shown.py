"""The commands that pages show, and what runs each: a test, or nothing, with the reason.

A command that no rule takes fails tests/unit/test_shown_commands.py: run it, or say here why not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .pages import PAGES, commands, scripts

OPERATORS: Final = "tests/handlers/test_page_commands.py"
"""Runs commands of operators as they stand, on a deployment on moto."""
LOCAL: Final = "tests/e2e/test_page_commands.py"
"""Runs what stands on pages, some from beginning to end, on the tests' local stack."""
INDEX: Final = "tests/e2e/test_operator_commands.py"
"""Runs commands about the search index as they stand, on a local stack that has one."""
INSTALLED: Final = "tests/e2e/test_installed.py"
FIRST_APP: Final = "tests/e2e/test_first_app.py"
EXAMPLES: Final = "tests/e2e/test_examples.py"
LIFE: Final = "tests/e2e/test_local_life.py"
MAKE: Final = "tests/unit/test_makefile.py"
"""Compares what ``make`` would run with the table ``RECIPES`` below."""
GENERATED: Final = frozenset({"docs/reference/commands.md", "README.ja.md"})
"""One is made from the commands themselves, the other has the blocks of README.md."""


@dataclass(frozen=True)
class Rule:
    """Whose commands it takes: those of the pages (of all, when none is named) that match."""

    by: str | None
    """The test that runs them. None: nothing runs them."""
    command: str
    """A regular expression for the beginning of the command."""
    pages: tuple[str, ...] = ()
    why: str = ""
    """Why nothing runs it, or in which other form the test does; empty: as it stands."""

    def takes(self, page: str, command: str) -> bool:
        here = not self.pages or any(re.fullmatch(each, page) for each in self.pages)
        return here and re.match(self.command, command) is not None


FAIRLANE: Final = r"(\.venv/bin/)?fairlane "
RULES: Final = (
    # Pages that are one script, from their first line to their last.
    Rule(LOCAL, r"", ("docs/tutorial.md",)),
    Rule(LOCAL, rf"make (up|down)|{FAIRLANE}jobs", ("README.md",)),
    Rule(FIRST_APP, rf"{FAIRLANE}|CDK_OUTDIR=", ("docs/first-app.md",)),
    Rule(
        FIRST_APP,
        r"mkdir|python3 -m venv|pip install",
        ("docs/first-app.md",),
        why="from the wheel, by uv, in an environment that several tests share",
    ),
    Rule(EXAMPLES, r"python -m pytest", ("examples/.*",)),
    Rule(
        EXAMPLES,
        r"",
        ("examples/.*",),
        why="from wheels; the example's own tests do the same on a local stack",
    ),
    # One command at a time, on a deployment that has what the command is about.
    Rule(OPERATORS, rf"{FAIRLANE}(audit|cost|dispatches|dlq|effects|events|rates|tenants) "),
    Rule(
        OPERATORS, rf"{FAIRLANE}operations ", ("docs/operations.md", "docs/how-to/lookup-table.md")
    ),
    Rule(INDEX, rf"{FAIRLANE}(drift|index) "),
    Rule(
        "tests/e2e/test_doctor.py",
        rf"{FAIRLANE}doctor ",
        why="with the name of a local stack of its own",
    ),
    Rule(
        "tests/e2e/test_aws_check.py",
        rf"{FAIRLANE}aws-check ",
        why="on a local stack, by its name",
    ),
    Rule(INDEX, rf"{FAIRLANE}jobs submit --operation reindex .*--query"),
    Rule(
        "tests/unit/client/test_jobs_submit_command.py",
        rf"{FAIRLANE}jobs submit .*--table",
        why="with a stand-in for the API; the backfill example does it on a local stack",
    ),
    Rule(LOCAL, rf"{FAIRLANE}(jobs|lanes) "),
    Rule(LOCAL, rf"{FAIRLANE}(local status|token)"),
    Rule(LOCAL, r"curl -H "),
    Rule(LOCAL, r"printf "),
    Rule(
        LIFE,
        rf"{FAIRLANE}local (up|deploy|down)",
        why="by the class behind the command; docs/first-app.md runs up and down themselves",
    ),
    Rule(
        "tests/contract/test_webhook_receivers.py",
        r"WEBHOOK_SECRETS=",
        why="on a free port, in both languages",
    ),
    Rule(
        "tests/e2e/test_opensearch_node.py",
        rf"{FAIRLANE}opensearch ",
        why="by the class behind the command",
    ),
    Rule(
        "tests/e2e/test_verify.py",
        rf"{FAIRLANE}verify --all",
        why="some of the scenarios, with their controls; all of them take many minutes",
    ),
    Rule(INSTALLED, r"pip install", ("docs/client.md",), why="from wheels, by uv"),
    Rule(MAKE, r"make ", why="what it would run; RECIPES names the test of each recipe"),
    # Nothing runs these.
    Rule(None, r"\. \.venv/bin/activate$", ("README.md", "docs/deploy.md"), why="a shell's own"),
    Rule(
        None,
        r"\.venv/cdk/node_modules/\.bin/cdk (bootstrap|deploy|destroy|diff)",
        why="needs an AWS account; local stacks deploy the same templates through CloudFormation's "
        "API",
    ),
    Rule(
        None,
        r"aws ",
        why="needs an AWS account; tests/infra/test_runbook.py compares operation and options with "
        "the models of AWS's API",
    ),
    Rule(
        None,
        r"curl --aws-sigv4",
        why="a local stack has no IAM authorization; a test asks curl for the options",
    ),
)
RECIPES: Final = {
    "check": ("pytest -n 3", None),
    "demo": ("fairlane demo", "tests/e2e/test_demo.py"),
    "down": ("fairlane local down", LOCAL),
    "setup": ("uv pip install --quiet --require-hashes -r requirements/dev.txt", None),
    "simulate": ("fairlane simulate --seed 7", "tests/simulation/test_commands.py"),
    "soak": ("fairlane soak --runs 20000", "tests/simulation/test_commands.py"),
    "synth": ("cdk synth --quiet", None),
    "test": ("cdk synth --quiet", None),
    "unit": ("pytest -n 3 --dist loadgroup --no-loadscope-reorder tests/unit", None),
    "up": ("fairlane local up", LOCAL),
}
"""What each target that a page shows comes down to, and the test that runs that command. None: it
is what runs the tests, or a part of that run."""


@dataclass(frozen=True)
class Shown:
    page: str
    command: str

    @property
    def words(self) -> str:
        """Without the folder of the environment."""
        return self.command.removeprefix(".venv/bin/")


def shown() -> Iterator[Shown]:
    """Every command of every page, in the pages' order."""
    for name, page in PAGES.items():
        if name not in GENERATED:
            for script in scripts(page.read_text(encoding="utf-8")):
                for command in commands(script):
                    yield Shown(name, command)


def rule_of(each: Shown) -> Rule | None:
    """The first that takes it."""
    return next((rule for rule in RULES if rule.takes(each.page, each.command)), None)


def run_by(test: str) -> list[Shown]:
    """The commands that a test runs as they stand, each once."""
    found: dict[str, Shown] = {}
    for each in shown():
        rule = rule_of(each)
        if rule is not None and rule.by == test and not rule.why:
            found.setdefault(each.command, each)
    return list(found.values())

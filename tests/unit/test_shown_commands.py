"""Every command and every snippet that a page shows is run by a test, or a reason stands here."""

from __future__ import annotations

import re
import subprocess
from typing import Final

import pytest

from tests.support.pages import PAGES, ROOT, SHELL, commands, fenced, figures, is_script
from tests.support.shown import RECIPES, RULES, Rule, Shown, rule_of, run_by, shown

FIGURES: Final = {
    "README.md": 3,  # a call and its answer, shortened; what the demo prints; the parts
    "docs/architecture.md": 1,
    "docs/deploy.md": 1,  # an error
    "docs/effects.md": 2,  # a chunk; a request to a webhook
    "docs/operations.md": 1,  # a folder
    "docs/protocol.md": 2,
}
"""Plain blocks without commands: diagrams, folders, and what is printed."""

DOCS: Final = "tests/unit/test_docs.py"
SNIPPETS: Final = "tests/contract/test_page_snippets.py"
SETTINGS: Final = "tests/unit/test_how_to.py"
RUN: Final = {
    ("README.md", "python"): DOCS,
    ("docs/client.md", "python"): "tests/e2e/test_client_wire.py",
    ("docs/construct.md", "python"): "tests/infra/test_construct.py",
    ("docs/deploy.md", "json"): SETTINGS,
    ("docs/effects.md", "json"): SETTINGS,
    ("docs/first-app.md", "json"): "tests/e2e/test_first_app.py",
    ("docs/first-app.md", "python"): "tests/e2e/test_first_app.py",
    ("docs/how-to/index-in-step.md", "json"): SETTINGS,
    ("docs/how-to/lookup-table.md", "csv"): "tests/e2e/test_client_wire.py",
    ("docs/how-to/lookup-table.md", "python"): f"{DOCS} tests/e2e/test_client_wire.py",
    ("docs/how-to/own-table.md", "json"): f"{SETTINGS} {SNIPPETS}",
    ("docs/how-to/own-vpc.md", "json"): SETTINGS,
    ("docs/how-to/webhooks.md", "json"): SETTINGS,
    ("docs/how-to/webhooks.md", "python"): "tests/contract/test_webhook_receivers.py",
    ("docs/how-to/webhooks.md", "ts"): "tests/contract/test_webhook_receivers.py",
    ("docs/issuers.md", "json"): "tests/handlers/test_authorizer_issuers.py",
    ("docs/lease.md", "python"): SNIPPETS,
    ("docs/opensearch.md", "python"): SNIPPETS,
    ("docs/operations.md", "python"): DOCS,
    ("docs/operators.md", "json"): "tests/handlers/test_operator_policy.py",
    ("docs/selection.md", "json"): SNIPPETS,
    ("docs/tutorial.md", "json"): "tests/e2e/test_page_commands.py",
    ("docs/tutorial.md", "python"): f"{DOCS} tests/e2e/test_page_commands.py",
    ("docs/tutorial.md", "ts"): "tests/e2e/test_page_commands.py",
    ("docs/upgrade.md", "json"): SETTINGS,
}
"""Snippets: the page, the language, and the tests that take them from the page."""
GENERATED: Final = r"docs/reference/.*|README\.ja\.md"
"""Made from the code, or held to README.md."""


def test_every_command_is_run_or_has_a_reason() -> None:
    assert [each for each in shown() if rule_of(each) is None] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.command or rule.pages[0])
def test_every_rule_takes_commands_and_says_what_it_must(rule: Rule) -> None:
    assert any(rule_of(each) is rule for each in shown())
    if rule.by is None:
        assert rule.why
    else:
        assert (ROOT / rule.by).is_file()


def test_a_command_that_nobody_runs_is_seen() -> None:
    assert rule_of(Shown("docs/new.md", "fairlane explode")) is None
    assert rule_of(Shown("docs/new.md", "docker run it")) is None
    assert commands("docker run it  # not so\n") == ["docker run it"]


def test_commands_are_read_as_a_shell_reads_them() -> None:
    script = "a 'b # c' \\\n   --d  # e\n# f\nexport G=$(h | i \\\n  'j, k')\nl '{\n  \"m\": 1}'\n"
    assert commands(script) == [
        "a 'b # c' --d",
        "export G=$(h | i 'j, k')",
        "l '{ \"m\": 1}'",
    ]


def test_plain_blocks_without_commands_are_known() -> None:
    """A block that begins with an unknown program would look like one of them."""
    found = {
        name: len(figures(page.read_text(encoding="utf-8")))
        for name, page in PAGES.items()
        if not re.fullmatch(GENERATED, name)
    }
    assert {name: count for name, count in found.items() if count} == FIGURES
    assert not is_script("docker run it\n")


def test_every_snippet_is_taken_by_a_test() -> None:
    found = {
        (name, language)
        for name, page in PAGES.items()
        if not re.fullmatch(GENERATED, name)
        for language, _ in fenced(page.read_text(encoding="utf-8"))
        if language not in SHELL
    }
    assert found == set(RUN)
    for (page, _), tests in RUN.items():
        for test in tests.split():
            # The name, or the folder whose pages it goes through.
            source = (ROOT / test).read_text(encoding="utf-8")
            assert page.rpartition("/")[2] in source or '"how-to"' in source, (page, test)


def test_every_target_that_is_shown_has_its_recipe() -> None:
    targets = {each.command.split()[1] for each in shown() if each.command.startswith("make ")}
    assert targets == set(RECIPES)
    for _, test in RECIPES.values():
        assert test is None or (ROOT / test).is_file()


def test_those_that_run_commands_have_some() -> None:
    for rule in RULES:
        if rule.by is not None and not rule.why:
            assert run_by(rule.by)


def test_curl_signs_as_the_page_says() -> None:
    known = subprocess.run(["curl", "--help", "all"], capture_output=True, text=True, check=True)
    [signed] = [each.command for each in shown() if each.command.startswith("curl --aws-sigv4")]
    for option in re.findall(r"--[a-z0-9-]+", signed):
        assert f" {option} " in known.stdout, option

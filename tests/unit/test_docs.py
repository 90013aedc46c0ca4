"""Docs that run: what README and the protocol page say is checked against the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from typer.main import get_command

from fairlane import operations
from fairlane_client.commands.app import app
from handlers.jobs.words.states import EDGES
from infra.settings import DeploySettings
from scripts.verify import waf
from scripts.verify.registry import SCENARIOS
from tests.support.pages import blocks, commands, scripts

ROOT: Final = Path(__file__).parents[2]
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
CASES: Final = (ROOT / "docs" / "cases.md").read_text(encoding="utf-8")
PROTOCOL: Final = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
TUTORIAL: Final = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
EXAMPLES: Final = {*(ROOT / "examples").rglob("*.md")}
PAGES: Final = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *EXAMPLES} - {ROOT / "CHANGELOG.md"}
)


def edge_rows(text: str) -> dict[tuple[str, str], str]:
    rows = re.findall(r"^\| ([a-z]) \| (\w+) → (\w+) \| (.*?) \|$", text, flags=re.MULTILINE)
    return {(before, after): f"{letter}: {why}" for letter, before, after, why in rows}


def test_the_protocol_page_has_the_edges_of_the_code() -> None:
    code = {(before.value, after.value): why for (before, after), why in EDGES.items()}
    assert edge_rows(PROTOCOL) == code


def test_every_edge_has_its_letter_in_the_diagram() -> None:
    diagram = PROTOCOL.split("## States")[1].split("```")[1]
    for why in EDGES.values():
        letter = why[0]
        assert re.search(rf"(?<![A-Za-z]){letter}(?![A-Za-z])", diagram), why


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(test_c\d\d)`", PROTOCOL))
    assert named
    there = {
        found
        for path in (ROOT / "tests").rglob("test_*.py")
        for found in re.findall(r"def (test_c\d\d)", path.read_text(encoding="utf-8"))
    }
    assert named <= there


def cases_of(text: str) -> dict[str, set[str]]:
    """The rows of the catalogue's first section: the files that each case names."""
    tested = text.split("\n## Held by tests\n")[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| C(\d{2,3}) \|.*\| ([^|]+) \|$", tested, flags=re.MULTILINE)
    assert len({number for number, _ in rows}) == len(rows), "a case is listed twice"
    return {number: set(re.findall(r"`([^`]+)`", files)) for number, files in rows}


def cases_in(source: str) -> set[str]:
    """The numbers in the names of tests: ``test_c21_c24_…`` has two, ``test_c08a_…`` has one."""
    names = re.findall(r"def test((?:_c\d{2,3}[a-z]?)+)_", source)
    return {number for name in names for number in re.findall(r"_c(\d{2,3})", name)}


def test_the_catalogue_lists_the_cases_that_tests_hold() -> None:
    held: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        for number in cases_in(path.read_text(encoding="utf-8")):
            held.setdefault(number, set()).add(path.relative_to(ROOT).as_posix())
    assert cases_of(CASES) == held


def test_no_case_is_both_held_by_a_test_and_not_mended() -> None:
    rest = CASES.split("\n## Held by tests\n")[1].split("\n## ", 1)[1]
    other = re.findall(r"^\| C(\d{2,3}) \|", rest, flags=re.MULTILINE)
    assert len(set(other)) == len(other)
    assert not set(other) & set(cases_of(CASES))


def test_every_file_that_is_named_exists() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        names = re.findall(r"`((?:tests|handlers|infra|scripts|docs|requirements)/[\w./-]+)`", text)
        links = re.findall(r"\]\((?!https?:|#)([^)#]+)", text)
        for name in names:
            assert (ROOT / name).exists(), f"{page.name} names {name}"
        for link in links:
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


OWN: Final = """
from pathlib import Path
from fairlane.checking import inspected
[found] = inspected(Path("our_operations"))
given = found.parameters.model_validate({"field": "name"})
assert found.writes(given) == {"name"}
answers = [found.apply(f, given) for f in ({"name": "x"}, {"name": "X"}, {})]
print(*(type(a).__name__ for a in answers), answers[0].fields["name"])
"""


def ran(folder: Path, program: str) -> str:
    """In a process of its own: an operation that is declared here would be every test's."""
    script = folder / "program.py"
    script.write_text(program, encoding="utf-8")
    command = [sys.executable, str(script)]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def own_folder(tmp_path: Path, module: str, source: str) -> Path:
    (tmp_path / "our_operations").mkdir()
    (tmp_path / "our_operations" / module).write_text(source, encoding="utf-8")
    return tmp_path


def test_the_operation_in_the_readme_works_and_is_short(tmp_path: Path) -> None:
    [source] = blocks(README, "python")
    assert len(source.splitlines()) < 25
    folder = own_folder(tmp_path, "upper_case.py", source)
    assert ran(folder, OWN).split() == ["Change", "Skip", "Fail", "X"]


def test_the_operation_of_the_page_holds_in_its_own_test(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    source, test = blocks(page, "python")
    folder = own_folder(tmp_path, "raise_price.py", source)
    assert ran(folder, f"{test}\n\ntest_a_price_is_raised()\nprint('held')") == "held\n"


CONVERTED: Final = """
from fairlane.testing import table, tried
from our_operations.convert import convert
rates = table({"USD": {"currency": "USD", "rate": "0.92"}})
for record in ({"currency": "USD", "price": 10}, {"currency": "CHF", "price": 10}):
    print(tried(convert, record, rates=rates).after.get("price_eur"))
"""


def test_the_operation_of_the_page_of_tables_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "lookup-table.md").read_text(encoding="utf-8")
    source, _ = blocks(page, "python")
    folder = own_folder(tmp_path, "convert.py", source)
    assert ran(folder, CONVERTED).split() == ["9.2", "None"]


HEIGHTS: Final = """
from fairlane.testing import tried
from our_operations.height_class import height_class
found = [tried(height_class, {"elevation": feet}, high=5000) for feet in (5431, 12, "?")]
found.append(tried(height_class, {"elevation": 12, "height": "low"}, high=5000))
print(*(f"{type(each.outcome).__name__}:{each.after.get('height')}" for each in found))
"""


def test_the_operation_of_the_tutorial_works(tmp_path: Path) -> None:
    source, client = blocks(TUTORIAL, "python")
    folder = own_folder(tmp_path, "height_class.py", source)
    assert ran(folder, HEIGHTS).split() == ["Change:high", "Change:low", "Fail:None", "Skip:low"]
    compile(client, "client.py", "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_scenario_that_is_named_exists(page: Path) -> None:
    named = re.findall(r"fairlane verify ([a-z][a-z-]+)", page.read_text(encoding="utf-8"))
    assert {*named} <= {*(each.name for each in SCENARIOS), waf.NAME}


def test_the_comparison_has_a_source_for_each() -> None:
    text = (ROOT / "docs" / "compared.md").read_text(encoding="utf-8")
    told = re.findall(r"^\*\*\[([^\]]+)\]\(https://[^)]+\)", text, re.MULTILINE)
    assert len(told) == 9


def test_the_props_of_the_page_are_those_of_the_construct() -> None:
    page = (ROOT / "docs" / "construct.md").read_text(encoding="utf-8")
    calls = [
        node
        for source in blocks(page, "python")
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "FairlaneJobs"
    ]
    assert len(calls) == 2
    rows = re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
    named = {*(each.arg for call in calls for each in call.keywords), *rows}
    assert named - {"settings", "state"} <= DeploySettings.model_fields.keys()


def test_the_page_names_all_that_operations_may_import() -> None:
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([A-Za-z_]+)", page))
    types = {"BadValue", "Fields", "Operation", "Outcome", "Value"}
    sinks = {"EVENT_BUS_SINK", "SEARCH_INDEX", "WEBHOOK"}
    assert set(operations.__all__) - types - sinks <= words


def checked(text: str) -> list[str]:
    """The commands that the Makefile and the command tree can be asked for."""
    beginnings = ("make ", ".venv/bin/fairlane ", "fairlane ")
    found = [each for script in scripts(text) for each in commands(script)]
    return [each for each in found if each.startswith(beginnings)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in checked(page.read_text(encoding="utf-8")):
        words = command.split()
        if words[0] == "make":
            assert words[1] in targets, command
        else:
            assert_fairlane(words[1:], command)


def assert_fairlane(words: list[str], command: str) -> None:
    """Each word up to the first option names a command; each option is one of its own."""
    found: Any = get_command(app)
    names = list(words)
    while names and hasattr(found, "commands") and not names[0].startswith("-"):
        known = found.get_command(None, names[0])
        assert known is not None, command
        found = getattr(known, "loaded", known)
        del names[0]
    options = {name for each in found.params for name in (*each.opts, *each.secondary_opts)}
    options |= {"--help"}
    for word in names:
        if word.startswith("--"):
            assert word.split("=")[0] in options, f"{command}: {word}"


def test_the_checks_see_what_is_wrong() -> None:
    names = ("test_c21_c24_x", "test_c119a_y", "test_x_c01")
    assert cases_in("\n".join(f"def {name}():" for name in names)) == {"21", "24", "119"}
    page = "\n## Held by tests\n\n| C01 | A | b | `test_a.py` |\n\n## Known\n\n| C70 | x |"
    assert cases_of(page) == {"01": {"test_a.py"}}
    assert edge_rows("| z | QUEUED → SUCCEEDED | magic |") == {("QUEUED", "SUCCEEDED"): "z: magic"}
    assert checked("```\nmake nothing   # x\n```\n") == ["make nothing"]
    assert checked("```ts\nx\n```\n\nmake up\n\n```\nmake nothing\n```\n") == ["make nothing"]
    with pytest.raises(AssertionError):
        assert_fairlane(["jobs", "explode"], "fairlane jobs explode")
    with pytest.raises(AssertionError):
        assert_fairlane(["jobs", "list", "--sideways"], "fairlane jobs list --sideways")

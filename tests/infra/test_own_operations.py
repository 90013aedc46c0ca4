"""A team's own operations: checked at synthesis, and packed beside the handlers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from infra.bundling import LOCK, OwnWheels, image_context
from infra.operations import OperationsError, own_operations
from scripts.checks import pins

from .environments import environments
from .synthesis import OWN_OPERATIONS, Synthesised

GOOD = """
from fairlane.operations import Fields, Outcome, Parameters, Skip, operation


class Nothing(Parameters):
    pass


@operation("nothing", Nothing, writes=lambda _: frozenset())
def nothing(record: Fields, parameters: Nothing) -> Outcome:
    '''Do nothing.'''
    return Skip("as asked")
"""


def folder_of(tmp_path: Path, source: str = GOOD, name: str = "our_operations") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "ours.py").write_text(source, encoding="utf-8")
    return folder


def test_a_folder_of_operations_is_found_with_what_it_requires() -> None:
    own = own_operations(str(OWN_OPERATIONS))
    assert (own.package, own.names) == ("own_operations", ("raise_price",))
    assert own.requirements == "python-dateutil>=2.8\n"


def test_a_wrong_one_is_refused_with_file_and_line(tmp_path: Path) -> None:
    """tests/unit/operations/test_checking.py has the ways to be wrong."""
    folder = folder_of(tmp_path, GOOD.replace("Outcome:", "Outcome"))
    with pytest.raises(OperationsError) as refusal:
        own_operations(str(folder))
    assert f"{folder}/ours.py:10: SyntaxError" in str(refusal.value)


def test_what_is_no_folder_and_no_entry_point_is_refused() -> None:
    with pytest.raises(OperationsError, match="no entry point of that name"):
        own_operations("nowhere")


def test_a_module_that_ends_the_process_is_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, "import os, sys\nsys.stderr.write('bye')\nos._exit(0)\n")
    with pytest.raises(OperationsError, match="importing it ended the process: bye"):
        own_operations(str(folder))


def test_an_installed_distribution_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(tmp_path, name="shop_operations")
    info = tmp_path / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Name: shop\nVersion: 1.0\nRequires-Dist: fairlane\nRequires-Dist: tzdata>=2025\n"
        'Requires-Dist: pytest; extra == "test"\n'
    )
    (info / "entry_points.txt").write_text("[fairlane.operations]\nshop = shop_operations\n")
    monkeypatch.syspath_prepend(tmp_path)
    own = own_operations("shop")
    assert (own.package, own.names, own.requirements) == (
        "shop_operations",
        ("nothing",),
        "tzdata>=2025",
    )


def test_functions_and_workers_are_told_of_it_and_have_its_wheels(other: Synthesised) -> None:
    told = {name: variables.get("FAIRLANE_OPERATIONS") for name, variables in environments(other)}
    assert told == {
        **dict.fromkeys(("api", "small_lane", "bulk_worker", "recovery"), "own_operations"),
        "authorizer": None,
    }
    assert len(other.of("Lambda::LayerVersion")) == 2
    for function in other.of("Lambda::Function").values():
        assert len(function["Layers"]) == 2


def test_without_any_nothing_of_it_is_there(stack: Synthesised) -> None:
    assert not [v for _, v in environments(stack) if "FAIRLANE_OPERATIONS" in v]
    assert len(stack.of("Lambda::LayerVersion")) == 1


def test_the_image_has_the_operations_and_what_they_require(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "requirements.txt").write_text("tzdata>=2025\n")
    (folder / "test_ours.py").write_text("raise SystemExit")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "ours.pyc").touch()
    context = image_context(own_operations(str(folder)))
    files = {str(file.relative_to(context)) for file in context.rglob("*") if file.is_file()}
    assert {file for file in files if file.startswith("our_operations/")} == {
        "our_operations/ours.py",
        "our_operations/requirements.txt",
    }
    assert {"Dockerfile", "handlers/bulk_worker.py", "fairlane/operations.py"} <= files
    assert not [file for file in files if file.startswith(("handlers/testing", "fairlane/testing"))]
    assert (context / "requirements/operations.txt").read_text() == "tzdata>=2025\n"


def test_what_operations_require_never_changes_fairlanes_versions(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "requirements.txt").write_text("tzdata>=2025\n")
    context = image_context(own_operations(str(folder)))
    constraints = (context / "requirements/constraints.txt").read_text(encoding="utf-8")
    found = dict(re.findall(r"^([\w.-]+)==([^\s;]+)", constraints, re.MULTILINE))
    assert found == pins.locked(LOCK.read_text(encoding="utf-8"))
    command = " ".join(OwnWheels("3.13", "aarch64-manylinux_2_28", tmp_path).command(tmp_path))
    assert f"--only-binary :all: --constraint {tmp_path}/constraints.txt" in command
    assert command.endswith(f"--requirement {tmp_path}/operations.txt")

"""What makes a folder of operations one that cannot be deployed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlane.checking import OperationsError, inspected
from tests.support.own import forget

GOOD = """
from fairlane.operations import Fields, Outcome, Parameters, Skip, operation


class Nothing(Parameters):
    pass


@operation("nothing", Nothing, writes=lambda _: frozenset())
def nothing(record: Fields, parameters: Nothing) -> Outcome:
    '''Do nothing.'''
    return Skip("as asked")
"""


@pytest.fixture(autouse=True)
def only_for_this_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from forget(monkeypatch, "our_operations")


def folder_of(tmp_path: Path, source: str = GOOD, name: str = "our_operations") -> Path:
    folder = tmp_path / name
    folder.mkdir()
    (folder / "ours.py").write_text(source, encoding="utf-8")
    return folder


def test_a_folder_is_imported_without_its_tests(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    (folder / "test_ours.py").write_text("raise SystemExit")
    (folder / "conftest.py").write_text("raise SystemExit")
    [found] = inspected(folder)
    assert (found.name, found.description) == ("nothing", "Do nothing.")


@pytest.mark.parametrize(
    ("changed", "line", "what"),
    [
        ((") -> Outcome:", ") -> Outcome"), 10, "SyntaxError"),
        (("import Fields,", "import Feilds,"), 2, "cannot import name 'Feilds'"),
        (('"nothing"', '"Nothing!"'), 9, "'Nothing!': a name is up to 64 small letters"),
        (('"nothing"', '"set_fields"'), 9, "'set_fields' is declared twice"),
        (("(Parameters):", ":"), 9, "has to extend Parameters"),
        (("record: Fields, parameters: Nothing", "record: Fields"), 9, "two arguments"),
        (("def nothing", "async def nothing"), 9, "a plain function"),
        (("frozenset())", 'frozenset(), sinks=("fax",))'), 9, "names the sinks fax"),
        (("    '''Do nothing.'''\n", ""), 9, "'nothing' has no docstring"),
        (
            ("    pass", "    x: __import__('collections.abc').abc.Callable[[], int]"),
            5,
            "have no JSON schema",
        ),
        (("class Nothing", "import nowhere_at_all\nclass Nothing"), 5, "install what the package"),
        (("class Nothing", "1 / 0\nclass Nothing"), 5, "ZeroDivisionError"),
        (("class Nothing", "raise SystemExit(3)\nclass Nothing"), 5, "SystemExit: 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_one_is_refused_with_file_and_line(
    tmp_path: Path, changed: tuple[str, str], line: int, what: str
) -> None:
    source = GOOD.replace(*changed, 1)
    assert source != GOOD
    folder = folder_of(tmp_path, source)
    with pytest.raises(OperationsError) as refusal:
        inspected(folder)
    assert f"{folder}/ours.py:{line}: " in str(refusal.value)
    assert what in str(refusal.value)


@pytest.mark.parametrize("name", ["json", "handlers", "boto3", "our-operations", "class"])
def test_a_folder_that_could_not_be_imported_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(OperationsError, match="call the folder otherwise"):
        inspected(folder_of(tmp_path, name=name))


def test_a_folder_without_operations_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperationsError, match="there is no such folder"):
        inspected(tmp_path / "nowhere")
    with pytest.raises(OperationsError, match="no module of it declares an operation"):
        inspected(folder_of(tmp_path, ""))
    with pytest.raises(OperationsError, match="no Python module in it"):
        inspected(tmp_path)

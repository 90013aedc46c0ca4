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
        (("    pass", "    percent: float"), 9, "'nothing': the parameter 'percent' is declared"),
        (
            ("    pass", "    inner: 'Inner'\n\n\nclass Inner(Parameters):\n    share: float"),
            5,
            "'nothing': the parameter 'inner.share' is declared with float",
        ),
        (
            ("    pass", "    model_config = {'defer_build': True}\n    share: float"),
            5,
            "'nothing': the parameter 'share' is declared with float",
        ),
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


TABLE = """
from pydantic import field_validator, model_validator

from fairlane.operations import Fields, Outcome, Parameters, Skip, StrictInt, Table, operation


class Convert(Parameters):
    rates: Table
    digits: StrictInt = 2

CHECK

@operation("convert", Convert, writes=lambda _: frozenset())
def convert(record: Fields, parameters: Convert) -> Outcome:
    '''Convert.'''
    return Skip("as asked")
"""
OF_A_FIELD = """
    @field_validator("rates")
    @classmethod
    def _has_euros(cls, rates: Table) -> Table:
        if "EUR" not in rates:
            raise ValueError("has no euros")
        return rates
"""
OF_ALL = """
    @model_validator(mode="after")
    def _has_rows(self) -> "Convert":
        if len(self.rates) < self.digits:
            raise ValueError("has too few rows")
        return self
"""
OF_ANOTHER = """
    @field_validator("digits", mode="before")
    @classmethod
    def _is_small(cls, digits: int) -> int:
        assert digits.bit_length() < 3
        return digits
"""
OF_DECIMALS = """
    @field_validator("digits", mode="before")
    @classmethod
    def _is_a_number(cls, digits: object) -> int:
        from decimal import Decimal

        return int(Decimal(str(digits)))
"""


@pytest.mark.parametrize(("check", "line"), [(OF_A_FIELD, 15), (OF_ALL, 14)])
def test_a_check_of_parameters_that_looks_into_a_table_is_refused(
    tmp_path: Path, check: str, line: int
) -> None:
    folder = folder_of(tmp_path, TABLE.replace("CHECK", check))
    with pytest.raises(OperationsError) as refusal:
        inspected(folder)
    assert f"{folder}/ours.py:{line}: the check of the parameters of 'convert'" in str(
        refusal.value
    )
    assert "read for the operation's function alone" in str(refusal.value)


@pytest.mark.parametrize("check", ["", OF_ANOTHER, OF_DECIMALS])
def test_a_table_that_only_the_function_looks_into_is_fine(tmp_path: Path, check: str) -> None:
    [found] = inspected(folder_of(tmp_path, TABLE.replace("CHECK", check)))
    assert found.name == "convert"

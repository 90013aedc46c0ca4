"""Whether a folder or package holds operations: ``python -m fairlane.checking FOLDER``.

It imports the package, so the CDK app runs it in a process of its own (``infra.operations``).
"""

from __future__ import annotations

import json
import keyword
import sys
import traceback
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from inspect import getsourcefile, getsourcelines
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from handlers.jobs.words.operation import Operation

TAKEN: Final = frozenset({"fairlane", "handlers", "infra", "scripts", "requirements", "python"})
"""Names that Fairlane's own code has beside a team's package."""


class OperationsError(ValueError):
    """Operations that cannot be deployed; the text has a line for each, with its file and line."""


def inspected(folder: Path) -> list[Operation]:
    """The operations that the package in this folder declares; imports it into this process.
    Raises OperationsError."""
    from handlers.operations.registry import all_operations  # noqa: PLC0415  only here

    folder = folder.resolve()
    _check_folder(folder)
    before = set(all_operations())
    sys.path.insert(0, str(folder.parent))
    try:
        every = all_operations(folder.name)
    # Whatever a module of the team's raises, exiting included, is this package's problem.
    except BaseException as error:
        raise OperationsError(_where(error, folder)) from error
    own = [every[name] for name in every if name not in before]
    if not own:
        raise OperationsError(
            f"{folder}: no module of it declares an operation: decorate a function with "
            "@operation(...) of fairlane.operations"
        )
    for each in own:
        _check_schema(each)
        _check_tables(each, folder)
    return own


def _check_folder(folder: Path) -> None:
    name = folder.name
    if not folder.is_dir():
        raise OperationsError(f"{folder}: there is no such folder")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise OperationsError(f"{folder}: {name!r} cannot be imported; call the folder otherwise")
    if not any(folder.glob("*.py")):
        raise OperationsError(f"{folder}: there is no Python module in it")
    if name in TAKEN or name in sys.stdlib_module_names or _elsewhere(folder):
        raise OperationsError(
            f"{folder}: another package is called {name!r} already; call the folder otherwise"
        )


def _elsewhere(folder: Path) -> bool:
    """A package of that name is installed, from another place."""
    spec = PathFinder.find_spec(folder.name)
    if spec is None or not spec.submodule_search_locations:
        return spec is not None
    return folder not in {Path(place).resolve() for place in spec.submodule_search_locations}


def _where(error: BaseException, folder: Path, what: str = "") -> str:
    """``file:line: what``, of the last line inside the folder that led to it. what: in place of the
    error's own words."""
    what = what or f"{type(error).__name__}: {error}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    if isinstance(error, ModuleNotFoundError):
        what += "; install what the package requires in this environment too"
    frames = traceback.extract_tb(error.__traceback__)
    inside = [each for each in frames if Path(each.filename).is_relative_to(folder)]
    if not inside:
        return f"{folder}: {what}"
    return f"{inside[-1].filename}:{inside[-1].lineno}: {what}"


def _check_schema(found: Operation) -> None:
    """Clients are shown the parameters as a JSON schema. Making it completes a model that named a
    type before it was defined, which its declaration could not look at."""
    from handlers.operations.inexact import check_exact  # noqa: PLC0415  only here

    try:
        found.parameters.model_json_schema()
    except Exception as error:
        file, line = _place(found.parameters)
        raise OperationsError(
            f"{file}:{line}: the parameters of {found.name!r} have no JSON schema: {error}"
        ) from error
    try:
        check_exact(found.name, found.parameters)
    except TypeError as error:
        file, line = _place(found.parameters)
        raise OperationsError(f"{file}:{line}: {error}") from error
    if not found.description:
        file, line = _place(found.apply)
        raise OperationsError(
            f"{file}:{line}: {found.name!r} has no docstring, which is what clients read of it"
        )


def _check_tables(found: Operation, folder: Path) -> None:
    """No job can be created of an operation whose check of its parameters looks into a lookup
    table. Here it is seen where that takes no other parameter's value."""
    from handlers.jobs.words.table import TABLES, Table, TableNotRead  # noqa: PLC0415  only here

    fields = found.parameters.model_fields.items()
    ids = {field.alias or name: f"{at:032x}" for at, (name, field) in enumerate(fields)}
    read: set[str] = set()

    def noted(upload_id: str) -> Table:
        read.add(upload_id)
        return Table(None)

    def validated(names: Iterable[str]) -> None:
        named = {name: {"upload_id": ids[name]} for name in names}
        try:
            found.parameters.model_validate(named, context={TABLES: noted})
        except TableNotRead:
            raise
        except Exception:  # noqa: BLE001  whatever a check says of such values is no mistake of it
            return

    try:
        validated(ids)  # what can be a table is noted
        validated(name for name in ids if ids[name] in read)
    except TableNotRead as error:
        what = error.told(f"the check of the parameters of {found.name!r}")
        raise OperationsError(_where(error, folder, what)) from error


def _place(what: object) -> tuple[str, int]:
    return getsourcefile(what) or "", getsourcelines(what)[1]  # type: ignore[arg-type]  # a function or class


def _found(each: Operation) -> dict[str, object]:
    file, line = _place(each.apply)
    return {"name": each.name, "file": file, "line": line}


def main(arguments: Sequence[str]) -> None:
    """Print one line of JSON: the operations, or the problem."""
    try:
        own = [_found(each) for each in inspected(Path(arguments[0]))]
        answer: dict[str, object] = {"operations": own}
    except OperationsError as error:
        answer = {"problem": str(error)}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Puts a mutant's code into the modules that are loaded, in a process that ends afterwards."""

from __future__ import annotations

import gc
import sys
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from .generate import RULES, tree_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator, Mapping

    from .generate import Mutant


class NotSwapped(Exception):
    """Nothing that is loaded has the mutant's code."""


def swap_in(mutant: Mutant) -> None:
    """From here on, every module that has the changed definition has the mutant's. Raises
    NotSwapped."""
    swap_tree(mutant.module, mutant.where, tree_of(mutant))


def swap_tree(module: str, where: str, tree: ast.Module) -> None:
    """As ``swap_in``. tree: the module's, changed within ``where``."""
    path = str(RULES / module)
    code = compile(tree, path, "exec")
    if not where:
        _swap_constants(module, code)
        return
    changed = [each for each in _codes(code) if each.co_qualname == where]
    functions = functions_by_place().get((path, where))
    if not functions or not changed:
        raise NotSwapped(f"{module}: {where}")
    for function in functions:
        for each in changed:
            if each.co_firstlineno == function.__code__.co_firstlineno:
                function.__code__ = each


@cache
def functions_by_place() -> Mapping[tuple[str, str], list[FunctionType]]:
    """The functions of the rules that are loaded, by file and qualified name. Asked before a
    process forks, it costs its children nothing."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(f"{RULES}/"):
            place = each.__code__.co_filename, each.__code__.co_qualname
            found.setdefault(place, []).append(each)
    return found


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _swap_constants(module: str, code: CodeType) -> None:
    """A constant of the module, in every module that has imported it."""
    name = "handlers.jobs." + module.removesuffix(".py").replace("/", ".")
    loaded = sys.modules[name]
    fresh = ModuleType(name)
    fresh.__dict__.update(__package__=loaded.__package__, __file__=loaded.__file__)
    exec(code, fresh.__dict__)  # noqa: S102  our own module, changed
    swapped = False
    for known, old in list(vars(loaded).items()):
        new: Any = vars(fresh).get(known)
        if known.isupper() and type(old) is type(new) and old != new:
            swapped = True
            for other in list(sys.modules.values()):
                for attribute, value in list(getattr(other, "__dict__", {}).items()):
                    if value is old and getattr(other, "__name__", "").startswith("handlers.jobs"):
                        setattr(other, attribute, new)
    if not swapped:
        raise NotSwapped(module)

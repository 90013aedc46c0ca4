"""The mutants of a module, from its syntax tree.

A mutant leaves out one condition of a write, leaves out one guard or one part of an ``and`` or
``or``, or moves one comparison over its boundary. It is known by its module, its definition and its
change. Its key is a hash of the definition and the change: an edit elsewhere, a comment or a line
break leaves the key as it is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RULES: Final = ROOT / "handlers" / "jobs"
PACKAGES: Final = ("transitions", "storage", "events", "effects", "lifecycle", "execution")
"""The packages that write, or decide what is written."""
PACE: Final = frozenset(
    {
        "execution/dwell_report.py",
        "execution/governor.py",
        "execution/pace.py",
        "execution/rate_limiter.py",
        "execution/turns.py",
        "storage/backlog.py",
        "storage/small_dwell.py",
    }
)
"""Modules that decide how fast a job goes, and never what is written."""
BESIDE: Final = ("words/record_schema.py", "words/job.py", "words/states.py")
"""Modules below them that hold conditions of the protocol."""

CONDITIONS: Final = frozenset(
    {
        "Equals",
        "Differs",
        "Below",
        "BelowName",
        "AtMost",
        "Missing",
        "Present",
        "AnyOf",
        "as_stored",
    }
)
ORDERS: Final = {"Below": "AtMost", "AtMost": "Below"}
FLIPS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
JUMPS: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)
LONGEST: Final = 90
"""Characters of a description."""


@dataclass(frozen=True)
class Mutant:
    module: str
    """Below ``handlers/jobs``."""
    where: str
    """The qualified name of the outermost function around the change, or of its class; empty at the
    module's level."""
    what: str
    """The change; with (2) behind it when it is the second of these words in its definition."""
    key: str
    number: int
    """The place of its change among those of the module."""


@dataclass(frozen=True)
class _Change:
    """One field of one node gets another value."""

    what: str
    node: ast.AST
    field: str
    value: object


@dataclass(frozen=True)
class _Place:
    change: _Change
    definition: ast.AST
    """The outermost function around it, or the statement of the class or the module."""
    where: str


def modules() -> list[str]:
    """The modules that are mutated."""
    found = [path for name in PACKAGES for path in (RULES / name).glob("*.py")]
    names = {path.relative_to(RULES).as_posix() for path in found if path.name != "__init__.py"}
    order = ("words", *PACKAGES)
    return sorted((names - PACE) | set(BESIDE), key=lambda m: (order.index(m.split("/")[0]), m))


@cache
def mutants(module: str) -> list[Mutant]:
    """The module's mutants, in the order of its text."""
    return mutants_of(module, (RULES / module).read_text(encoding="utf-8"))


def mutants_of(module: str, source: str) -> list[Mutant]:
    found = []
    met: Counter[tuple[str, str]] = Counter()
    texts: dict[ast.AST, str] = {}
    for number, place in enumerate(_places(ast.parse(source))):
        where, what = place.where, place.change.what
        met[where, what] += 1
        if (nth := met[where, what]) > 1:
            what += f" ({nth})"
        if place.definition not in texts:
            texts[place.definition] = ast.unparse(place.definition)
        text = "\n".join((module, where, what, texts[place.definition]))
        key = sha256(text.encode()).hexdigest()[:10]
        found.append(Mutant(module, where, what, key, number))
    return found


def tree_of(mutant: Mutant) -> ast.Module:
    """The mutant's module, with the change."""
    tree = ast.parse((RULES / mutant.module).read_text(encoding="utf-8"))
    change = list(_places(tree))[mutant.number].change
    setattr(change.node, change.field, change.value)
    return ast.fix_missing_locations(tree)


# --- where a change can be made ---------------------------------------------------------------


def _places(tree: ast.Module) -> Iterator[_Place]:
    for top in tree.body:
        if not isinstance(top, ast.Import | ast.ImportFrom) and not _of_types(top):
            yield from _of_child(top, tree, "body", tree if _is_named(top) else top, "")


def _of_child(
    node: ast.AST, parent: ast.AST, field: str, definition: ast.AST, name: str
) -> Iterator[_Place]:
    """The changes at a node, then those within it."""
    for change in _at(node, parent, field):
        yield _Place(change, definition, name)
    if isinstance(node, ast.FunctionDef | ast.ClassDef) and not isinstance(
        definition, ast.FunctionDef
    ):
        definition, name = node, f"{name}.{node.name}" if name else node.name
    for inner, value in ast.iter_fields(node):
        if inner in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _of_child(child, node, inner, definition, name)


def _at(node: ast.AST, parent: ast.AST, field: str) -> Iterator[_Change]:
    match node:
        case ast.Tuple() if isinstance(node.ctx, ast.Load):
            yield from _conditions(node, by_name=_is_names(parent, field))
        case ast.Call(func=ast.Name(id=order)) if order in ORDERS:
            what = f"`{_text(node)}` with {ORDERS[order]}"
            yield _Change(what, node, "func", _condition(ORDERS[order]))
        case ast.Compare(ops=[op]) if type(op) in FLIPS and not _of_none(node):
            yield _flipped(node, op)
        case ast.BoolOp() if not _has_default(node):
            yield from _operands(node, parent, field)
        case ast.If() if not _only_reports(node):
            yield _guard(node)
    if _gives_conditions(node) and not _is_part(parent, field):
        what = f"without all of `{_text(node)}`"
        none = _with(getattr(parent, field), node, ast.Tuple([], ast.Load()))
        yield _Change(what, parent, field, none)


def _conditions(node: ast.Tuple, *, by_name: bool) -> Iterator[_Change]:
    for part in node.elts:
        inner = part.value if isinstance(part, ast.Starred) else part
        is_name = by_name and isinstance(inner, ast.Constant) and isinstance(inner.value, str)
        if is_name or _is_condition(inner) or _gives_conditions(inner):
            yield _Change(f"without `{_text(part)}`", node, "elts", _but(node.elts, part))


def _operands(node: ast.BoolOp, parent: ast.AST, field: str) -> Iterator[_Change]:
    for part in node.values:
        if not _of_none(part) and not _names_a_value(part):
            what = f"`{_text(node)}` without `{_text(part)}`"
            rest = _but(node.values, part)
            new = rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
            yield _Change(what, parent, field, _with(getattr(parent, field), node, new))


def _is_part(parent: ast.AST, field: str) -> bool:
    """Whether the conditions stand within others, or are only named."""
    within = isinstance(parent, ast.Starred | ast.Tuple | ast.Attribute)
    return within or (isinstance(parent, ast.Call) and field == "func")


def _but(parts: list[ast.expr], part: ast.expr) -> list[ast.expr]:
    return [other for other in parts if other is not part]


def _with(value: object, node: ast.AST, new: ast.expr) -> object:
    """The field's value, with the node replaced."""
    return [new if v is node else v for v in value] if isinstance(value, list) else new


def _guard(node: ast.If) -> _Change:
    """A guard that jumps is never taken; another one always is. Its test is evaluated all the same:
    it may give a name its value."""
    jumps = isinstance(node.body[-1], JUMPS)
    word = "never" if jumps else "always"
    taken: ast.expr = ast.Tuple([node.test], ast.Load())  # not empty, and so true
    if jumps:
        taken = ast.UnaryOp(ast.Not(), taken)
    return _Change(f"{word} `if {_text(node.test)}`", node, "test", taken)


def _flipped(node: ast.Compare, op: ast.cmpop) -> _Change:
    flipped = FLIPS[type(op)]()
    other = deepcopy(node)
    other.ops = [flipped]
    return _Change(f"`{_text(node)}` as `{_text(other)}`", node, "ops", [flipped])


def _condition(name: str) -> ast.expr:
    """The class of a condition, whatever the mutated module imports."""
    expression = f"__import__('sys').modules['handlers.jobs.words.writes'].{name}"
    return ast.parse(expression, mode="eval").body


# --- what a node is ---------------------------------------------------------------------------


def _is_condition(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and _name(node.func) in CONDITIONS


def _gives_conditions(node: ast.AST) -> bool:
    """A call, a property or a constant that is declared to be one or several conditions."""
    of = node.func if isinstance(node, ast.Call) else node
    is_read = isinstance(getattr(of, "ctx", None), ast.Load)
    return is_read and _name(of) in _declared()


def _is_names(parent: ast.AST, field: str) -> bool:
    """Whether the tuple is the list of the attributes that have to be as they were read."""
    targets = getattr(parent, "targets", ())
    return field == "value" and any(_name(target) == "names" for target in targets)


def _of_none(node: ast.AST) -> bool:
    """A test for None or for a type: without it, what follows can only crash."""
    match node:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
        case ast.UnaryOp(operand=ast.Call(func=ast.Name(id="isinstance"))):
            return True
        case ast.Call(func=ast.Name(id="isinstance")):
            return True
    return False


def _names_a_value(node: ast.AST) -> bool:
    """Whether what stands after it may need the name that it gives a value."""
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def _is_named(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def _only_reports(node: ast.If) -> bool:
    """Whether nothing follows from it but a line in the log or a metric."""
    calls = [each.value for each in node.body if isinstance(each, ast.Expr)]
    told = [_text(call).startswith(("world.telemetry.", "self._log(")) for call in calls]
    return len(calls) == len(node.body) and all(told)


def _has_default(node: ast.BoolOp) -> bool:
    """``x or {}``: a missing value is replaced by a default."""
    last = node.values[-1]
    literal = isinstance(last, ast.Constant | ast.Dict) or not getattr(last, "elts", True)
    return isinstance(node.op, ast.Or) and literal


def _of_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING"


@cache
def _declared() -> frozenset[str]:
    """The names that the rules declare as ``When`` or ``Condition``."""
    found = set()
    for path in RULES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and _text(node.returns) in {"When", "Condition"}:
                found.add(node.name)
            if isinstance(node, ast.AnnAssign) and (
                _text(node.annotation) == "Final[When]"
                or (isinstance(node.value, ast.expr) and _is_condition(node.value))
            ):
                found.add(_name(node.target))
    return frozenset(found) - CONDITIONS


def _name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _text(node: ast.AST | None) -> str:
    text = "" if node is None else " ".join(ast.unparse(node).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

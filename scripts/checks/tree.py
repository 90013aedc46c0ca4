"""What must hold for every file of the project.

Each check takes the root and files relative to it, and returns one line per finding.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

MODULE_LINES: Final = 450
"""A module has fewer lines than this; tests may be as long as they need."""

CDK: Final = "aws_cdk"
RULES: Final = Path("handlers/jobs")
RULE_TESTS: Final = Path("tests/unit/jobs")

# In parts, because this file must pass its own check. A container image's registry is not meant:
# an image has no other name.
_MACHINE_PATH: Final = re.compile(r"(?<![\w.~@-])/(?:work|root|(?:home|Users)/[\w.-]+)/")
_REGISTRY_HOST: Final = re.compile(
    r"\b(?:[\w-]+\.)*(?:pypi|pythonhosted|npmjs|yarnpkg|crates|maven\.apache|rubygems|golang)"
    r"\.(?:org|com|io)\b",
    re.IGNORECASE,
)


def tracked(root: Path) -> list[Path]:
    """The files that git tracks; without git (an unpacked archive) all but hidden folders'."""
    listing = subprocess.run(  # noqa: S603 - a constant command
        ["git", "-C", str(root), "ls-files", "-z"],  # noqa: S607 - git is where the user has it
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        names = [Path(name) for name in listing.stdout.decode().split("\0") if name]
    else:
        names = [path.relative_to(root) for path in root.rglob("*")]
        names = [name for name in names if not any(p.startswith(".") for p in name.parts[:-1])]
    return sorted(name for name in names if (root / name).is_file())


def long_modules(root: Path, files: Iterable[Path]) -> list[str]:
    """Python files outside tests with too many lines to be about one subject."""
    found = []
    for name in files:
        if name.suffix == ".py" and name.parts[0] != "tests":
            lines = len(_text(root / name).splitlines())
            if lines >= MODULE_LINES:
                found.append(f"{name}: {lines} lines, must be under {MODULE_LINES}")
    return found


def machine_names(root: Path, files: Iterable[Path]) -> list[str]:
    """Lines that name a folder of somebody's machine, or a package registry's host."""
    return [
        f"{name}:{number}: {match.group()}"
        for name in files
        for number, line in enumerate(_text(root / name).splitlines(), 1)
        for pattern in (_MACHINE_PATH, _REGISTRY_HOST)
        if (match := pattern.search(line))
    ]


def foreign_imports(source: str, allowed: frozenset[str]) -> list[str]:
    """Top-level packages that a module imports, beyond the allowed ones and the standard
    library. For ``app.py``, which the import linter can't read: it is no package."""
    imported = set(_imports(ast.parse(source)))
    return sorted(imported - allowed - sys.stdlib_module_names)


def imports_from_tests(root: Path, files: Iterable[Path]) -> list[str]:
    """Imports of a ``test_`` module: what tests share lies in ``tests/support``, or beside them in
    a module that is no test."""
    found = []
    for name in files:
        if name.suffix == ".py" and "test_" in (text := _text(root / name)):
            for node in ast.walk(ast.parse(text)):
                if paths := _paths(node):
                    modules = {part for path in paths for part in path.split(".")}
                    tests = sorted(module for module in modules if module.startswith("test_"))
                    found += [f"{name}: imports from {module}" for module in tests]
    return found


def _paths(node: ast.AST) -> list[str]:
    """What an import statement may load as a module, as it is written."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or "", *(alias.name for alias in node.names)]
    return []


def cdk_modules(root: Path, files: Iterable[Path]) -> set[str]:
    """Modules of the CDK that code imports, or names as a part of it (``cdk.aws_msk``)."""
    found = set()
    for name in files:
        if name.suffix == ".py" and "aws_cdk" in (text := _text(root / name)):
            nodes = list(ast.walk(ast.parse(text)))
            names = {CDK, *_cdk_names(nodes)}
            for node in nodes:
                found |= {path for path in _cdk_paths(node, names) if path.startswith(CDK)}
    return found


def _cdk_paths(node: ast.AST, names: set[str]) -> list[str]:
    """names: by which the code has the CDK itself."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        # The CDK's classes begin with a capital, its modules do not.
        modules = [alias.name for alias in node.names if alias.name.islower()]
        return [node.module, *(f"{node.module}.{name}" for name in modules)]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        module = node.value.id in names and node.attr.islower()
        return [f"{CDK}.{node.attr}"] if module else []
    return []


def _cdk_names(nodes: Iterable[ast.AST]) -> set[str]:
    """What the CDK is imported as."""
    imports = (node for node in nodes if isinstance(node, ast.Import))
    return {
        alias.asname
        for each in imports
        for alias in each.names
        if alias.name == CDK and alias.asname
    }


def rules_without_test(files: Iterable[Path]) -> list[str]:
    """Modules of ``handlers/jobs`` without a test in the mirrored place."""
    there = set(files)
    return [
        str(name)
        for name in sorted(there)
        if name.parts[:2] == RULES.parts and name.suffix == ".py" and name.stem != "__init__"
        if RULE_TESTS / name.relative_to(RULES).parent / f"test_{name.name}" not in there
    ]


def tests_without_rule(files: Iterable[Path]) -> list[str]:
    """Tests in a package's mirrored place that are named after none of its modules: a test's name
    is a module's, or begins with it (``test_delivery_replay.py``)."""
    there = set(files)
    modules = {name for name in there if name.parts[:2] == RULES.parts}
    found = []
    for name in sorted(there):
        if name.parts[:3] != RULE_TESTS.parts or not name.name.startswith("test_"):
            continue
        package = RULES / name.relative_to(RULE_TESTS).parent
        stem = name.stem.removeprefix("test_")
        named = (m.stem for m in modules if m.parent == package)
        if package != RULES and not any(f"{stem}_".startswith(f"{each}_") for each in named):
            found.append(str(name))
    return found


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")

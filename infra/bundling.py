"""What the functions ship: the handlers' code with a team's own operations, and beside it one layer
of locked wheels, and one of what the operations require.

A change of code never rebuilds wheels. Nothing here needs Docker.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import jsii
from aws_cdk import (
    AssetHashType,
    BundlingOptions,
    DockerImage,
    IgnoreMode,
    ILocalBundling,
)
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from .operations import OwnOperations, staged
from .settings import DeploySettings

ROOT: Final = Path(__file__).parent.parent
"""What the packages lie in: a checkout, or an environment that has the wheel."""
CHECKOUT: Final = (ROOT / "app.py").is_file() and (ROOT / "pyproject.toml").is_file()
SHIPPED_FILES: Final = Path(__file__).parent / "shipped"
"""In the wheel copies; in a checkout links to where the files are at home."""
DOCKERFILE: Final = SHIPPED_FILES / "Dockerfile"
LOCK: Final = SHIPPED_FILES / "lambda.txt"
PUBLIC: Final = ("__init__.py", "lease.py", "operations.py")
"""Of the package ``fairlane``: what operations and workers import."""
CODE: Final = ("handlers", *(f"fairlane/{name}" for name in PUBLIC))

SHIPPED: Final = [
    *("/*", "!/handlers", "/handlers/testing", "!/fairlane", "/fairlane/*"),
    *(f"!/fairlane/{name}" for name in PUBLIC),
    "__pycache__",
]
"""Gitignore rules: the handlers package without the in-memory adapters, and the public names."""

_ARCHITECTURES: Final = {
    "arm64": (lambda_.Architecture.ARM_64, "aarch64-manylinux_2_28"),
    "x86_64": (lambda_.Architecture.X86_64, "x86_64-manylinux_2_28"),
}
_PINNED: Final = re.compile(r"^[\w.\-\[\],]+==[^\s;\\]+(?: ;[^\\\n]+)?", re.MULTILINE)
"""A line of the lock file up to its hashes."""
_RUNTIMES: Final = {"3.13": lambda_.Runtime.PYTHON_3_13}


def architecture(settings: DeploySettings) -> lambda_.Architecture:
    return _ARCHITECTURES[settings.architecture][0]


def runtime(settings: DeploySettings) -> lambda_.Runtime:
    return _RUNTIMES[settings.python]


def handlers_code(own: OwnOperations | None = None) -> lambda_.Code:
    """The functions' code. Without own operations, a checkout is packed as it stands."""
    if own is None and CHECKOUT:
        return lambda_.Code.from_asset(str(ROOT), exclude=SHIPPED, ignore_mode=IgnoreMode.GIT)
    return lambda_.Code.from_asset(str(staged(ROOT, CODE, own)))


def image_context(own: OwnOperations | None = None) -> Path:
    """The folder that the worker's image is built in, with its Dockerfile."""
    if own is None and CHECKOUT:
        return ROOT
    stage = staged(ROOT, CODE, own)
    (stage / "requirements").mkdir()
    shutil.copyfile(DOCKERFILE, stage / DOCKERFILE.name)
    shutil.copyfile(LOCK, stage / "requirements" / LOCK.name)
    if own is not None and own.requirements:
        _write_requirements(stage / "requirements", own.requirements)
    return stage


def _write_requirements(folder: Path, requirements: str) -> None:
    """What the operations require, and what it must not change: Fairlane's own versions."""
    (folder / "operations.txt").write_text(requirements, encoding="utf-8")
    pinned = re.findall(
        r"^[\w.\-\[\]]+==[^\s;\\]+(?: ;[^\\\n]+)?", LOCK.read_text("utf-8"), re.MULTILINE
    )
    lines = [re.sub(r"\[[^]]*\]", "", line) for line in pinned]
    (folder / "constraints.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def dependencies_layer(scope: Construct, settings: DeploySettings) -> lambda_.LayerVersion:
    """The wheels of requirements/lambda.txt for the functions' platform."""
    platform = _ARCHITECTURES[settings.architecture][1]
    return lambda_.LayerVersion(
        scope,
        "Dependencies",
        description=f"Locked wheels for Python {settings.python} on {platform}",
        compatible_runtimes=[runtime(settings)],
        compatible_architectures=[architecture(settings)],
        code=lambda_.Code.from_asset(
            str(LOCK.parent),
            # The hash decides, so what else lies in the folder is of no account.
            exclude=["*", f"!{LOCK.name}"],
            asset_hash_type=AssetHashType.CUSTOM,
            asset_hash=layer_hash(LOCK.read_bytes(), settings.python, platform),
            bundling=BundlingOptions(
                image=DockerImage.from_registry("local-bundling-never-falls-back-to-docker"),
                local=Wheels(settings.python, platform),
            ),
        ),
    )


def operations_layer(
    scope: Construct, settings: DeploySettings, own: OwnOperations
) -> lambda_.LayerVersion:
    """The wheels that the operations require, in the versions of Fairlane's where it has them."""
    platform = _ARCHITECTURES[settings.architecture][1]
    folder = Path(tempfile.mkdtemp(prefix="fairlane-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write_requirements(folder, own.requirements)
    content = LOCK.read_bytes() + b"\0" + own.requirements.encode()
    return lambda_.LayerVersion(
        scope,
        "OperationsDependencies",
        description=f"What {own.package} requires, for Python {settings.python} on {platform}",
        compatible_runtimes=[runtime(settings)],
        compatible_architectures=[architecture(settings)],
        code=lambda_.Code.from_asset(
            str(folder),
            asset_hash_type=AssetHashType.CUSTOM,
            asset_hash=layer_hash(content, settings.python, platform),
            bundling=BundlingOptions(
                image=DockerImage.from_registry("local-bundling-never-falls-back-to-docker"),
                local=OwnWheels(settings.python, platform, folder),
            ),
        ),
    )


def layer_hash(lock: bytes, python: str, platform: str) -> str:
    return hashlib.sha256(b"\0".join([lock, python.encode(), platform.encode()])).hexdigest()


@jsii.implements(ILocalBundling)
class Wheels:
    """Installs the locked wheels for another platform than the one it runs on."""

    def __init__(self, python: str, platform: str) -> None:
        self._python = python
        self._platform = platform

    def try_bundle(self, output_dir: str, *_: object, **__: object) -> bool:
        """Raises CalledProcessError: returning False would start Docker.

        The options arrive as one positional object, against the generated signature.
        """
        subprocess.run(self.command(Path(output_dir)), check=True, stdout=sys.stderr)  # noqa: S603
        return True

    def command(self, output_dir: Path) -> list[str]:
        # S603 above: every word is ours or a setting limited to listed values.
        return [
            *(sys.executable, "-m", "uv", "pip", "install", "--quiet"),
            *("--target", str(output_dir / "python")),
            *("--python-version", self._python, "--python-platform", self._platform),
            *("--only-binary", ":all:", "--require-hashes", "--requirement", str(LOCK)),
        ]


class OwnWheels(Wheels):
    """Installs what a team's operations require."""

    def __init__(self, python: str, platform: str, folder: Path) -> None:
        super().__init__(python, platform)
        self._folder = folder

    def command(self, output_dir: Path) -> list[str]:
        kept = [word for word in super().command(output_dir)[:-3] if word != "--require-hashes"]
        constraints = ("--constraint", str(self._folder / "constraints.txt"))
        return [*kept, *constraints, "--requirement", str(self._folder / "operations.txt")]

"""What the functions ship: the handlers' code, and beside it one layer of locked wheels.

A change of code never rebuilds wheels. Nothing here needs Docker.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
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

from .settings import DeploySettings

ROOT: Final = Path(__file__).parent.parent
LOCK: Final = ROOT / "requirements" / "lambda.txt"

SHIPPED: Final = ["/*", "!/handlers", "/handlers/testing", "__pycache__"]
"""Gitignore rules: the handlers package without the in-memory adapters."""

_ARCHITECTURES: Final = {
    "arm64": (lambda_.Architecture.ARM_64, "aarch64-manylinux_2_28"),
    "x86_64": (lambda_.Architecture.X86_64, "x86_64-manylinux_2_28"),
}
_RUNTIMES: Final = {"3.13": lambda_.Runtime.PYTHON_3_13}


def architecture(settings: DeploySettings) -> lambda_.Architecture:
    return _ARCHITECTURES[settings.architecture][0]


def runtime(settings: DeploySettings) -> lambda_.Runtime:
    return _RUNTIMES[settings.python]


def handlers_code() -> lambda_.Code:
    return lambda_.Code.from_asset(str(ROOT), exclude=SHIPPED, ignore_mode=IgnoreMode.GIT)


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

"""What is shipped, for which platform, without Docker."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from infra import bundling
from infra.bundling import LOCK, ROOT, Wheels, image_context, layer_hash

from .synthesis import Synthesised, app_and_stack, settings_of


def test_wheels_are_locked_ready_made_and_for_the_functions_platform(tmp_path: Path) -> None:
    command = " ".join(Wheels("3.13", "aarch64-manylinux_2_28").command(tmp_path))
    assert f"--target {tmp_path}/python " in command
    assert "--python-version 3.13 --python-platform aarch64-manylinux_2_28" in command
    assert f"--only-binary :all: --require-hashes --requirement {LOCK}" in command


def test_a_failed_installation_fails_synthesis_instead_of_starting_docker(tmp_path: Path) -> None:
    class Broken(Wheels):
        def command(self, output_dir: Path) -> list[str]:
            return ["false", str(output_dir)]

    with pytest.raises(subprocess.CalledProcessError):
        # One positional object: that is how the CDK's engine calls it.
        Broken("3.13", "none").try_bundle(str(tmp_path), object())


@pytest.mark.parametrize(
    "changed", [(b"lock 2", "3.13", "arm"), (b"lock", "3.14", "arm"), (b"lock", "3.13", "x86")]
)
def test_only_lock_python_and_platform_make_another_layer(changed: tuple[bytes, str, str]) -> None:
    assert layer_hash(b"lock", "3.13", "arm") == layer_hash(b"lock", "3.13", "arm")
    assert layer_hash(*changed) != layer_hash(b"lock", "3.13", "arm")


def test_every_function_has_the_layer_and_its_platform(stack: Synthesised) -> None:
    (layer,) = stack.of("Lambda::LayerVersion")
    for function in stack.of("Lambda::Function").values():
        assert function["Layers"] == [{"Ref": layer}]
        assert function["Architectures"] == ["arm64"]
        assert function["Runtime"] == "python3.13"
    (task,) = stack.of("ECS::TaskDefinition").values()
    assert task["RuntimePlatform"]["CpuArchitecture"] == "ARM64"


def test_the_image_starts_the_same_command_as_the_task(stack: Synthesised) -> None:
    (task,) = stack.of("ECS::TaskDefinition").values()
    (worker,) = task["ContainerDefinitions"]
    words = ", ".join(f'"{word}"' for word in worker["EntryPoint"])
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"ENTRYPOINT [{words}]" in dockerfile
    assert f"/python:{settings_of().python}-slim@sha256:" in dockerfile


def test_the_checks_prefer_the_python_that_is_deployed() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    [looked_for] = re.findall(r"for each in (python\S+)", makefile)
    assert looked_for == f"python{settings_of().python}"


def test_only_what_runs_is_shipped(tmp_path: Path) -> None:
    app, _ = app_and_stack(settings_of(), tmp_path)
    app.synth()
    staged = {
        folder: {str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()}
        for folder in tmp_path.glob("asset.*")
        if (folder / "handlers").is_dir()
    }
    code, image = sorted(staged.values(), key=len)
    rest = {".dockerignore", "Dockerfile", "requirements/lambda.txt"}
    assert image - code == rest
    assert code < image
    assert {"handlers/settings.py", "handlers/jobs/words/timing.py"} <= code
    assert [
        file
        for file in sorted(image - rest)
        if not file.startswith("handlers/") or "testing/" in file or "__pycache__" in file
    ] == ["fairlane/__init__.py", "fairlane/lease.py", "fairlane/operations.py"]


def test_an_installed_package_has_what_the_image_is_made_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """tests/e2e/test_first_app.py synthesises from the wheel itself."""
    monkeypatch.setattr(bundling, "CHECKOUT", False)
    context = image_context()
    for name in ("Dockerfile", "requirements/lambda.txt"):
        assert (context / name).read_bytes() == (ROOT / name).read_bytes()
    files = {str(file.relative_to(context)) for file in context.rglob("*") if file.is_file()}
    assert {"handlers/bulk_worker.py", "fairlane/operations.py"} <= files
    assert not [file for file in files if file.startswith(("infra", "handlers/testing"))]

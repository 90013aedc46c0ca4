"""An assembly that was synthesised before is used again, and only while nothing has changed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from scripts.local import assemblies, processes
from scripts.local.assemblies import ASSEMBLY, ENTRY, KEPT, Assemblies, Content, content_of
from scripts.local.errors import LocalError
from scripts.local.project import PROJECT
from scripts.local.synthesis import Synthesis, last_error

APP: Final = """
import json, os, pathlib, subprocess, sys
from handlers.text import TEXT
with open("handlers/data.txt") as data:
    DATA = data.read()
with open("runs", "a") as runs:
    runs.write("run ")
out = pathlib.Path(os.environ["CDK_OUTDIR"])
out.mkdir(exist_ok=True)
context = json.loads(os.environ["CDK_CONTEXT_JSON"])["fairlane"]
if context.get("refuse"):
    raise SystemExit("refuse contradicts accept")
code = subprocess.run(
    [sys.executable, "pack.py", out], capture_output=True, text=True, check=True
).stdout
template = {
    "text": TEXT,
    "data": DATA,
    "code": f"{code}.zip",
    "context": context,
    "type": VERSION,
    "stray": os.environ.get("STRAY"),
    "validation": os.environ.get("CDK_VALIDATION"),
}
(out / "App.template.json").write_text(json.dumps(template))
"""

PACK: Final = """
import hashlib, pathlib, shutil, sys
new = pathlib.Path(sys.argv[1]) / "new"
skip = shutil.ignore_patterns("testing", "__pycache__")
shutil.copytree("handlers", new / "handlers", ignore=skip)
packed = "".join(file.read_text() for file in sorted(new.rglob("*.py")))
code = hashlib.sha256(packed.encode()).hexdigest()
new.rename(new.with_name(f"asset.{code}"))
print(code, end="")
"""
"""Another process packs, as the CDK's engine does."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a small ``app.py`` that notes each run."""
    folder = tmp_path / "project"
    for name, text in {
        "app.py": APP.replace("VERSION", "None"),
        "pack.py": PACK,
        "cdk.json": '{"context": {"flag": true}}',
        "handlers/__init__.py": "",
        "handlers/data.txt": "data",
        "handlers/packed.py": "as it was",
        "handlers/testing/double.py": "not packed",
        "handlers/text.py": 'TEXT = "as it was"',
        "infra/stack.py": "",
        "infra/shipped/lambda.txt": "boto3==1.0",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def kept(tmp_path: Path) -> Assemblies:
    return Assemblies(tmp_path / "kept")


def template(project: Path, kept: Assemblies, **settings: object) -> dict[str, object]:
    """What a synthesis with these settings ends with."""
    out = project.parent / "out"
    with Synthesis(settings, out, kept=kept, project=project) as synthesis:
        synthesis.assembly()
    found: dict[str, object] = json.loads((out / "App.template.json").read_text())
    return found


def runs(project: Path) -> int:
    return len((project / "runs").read_text().split())


def test_the_same_app_is_synthesised_once(project: Path, kept: Assemblies) -> None:
    first = template(project, kept, a=1)
    assert template(project, kept, a=1) == first
    assert runs(project) == 1


def change_code(project: Path) -> None:
    (project / "handlers/text.py").write_text('TEXT = "changed"')


def change_infra(project: Path) -> None:
    (project / "infra/stack.py").write_text("# changed")


def change_app(project: Path) -> None:
    (project / "app.py").write_text((project / "app.py").read_text() + "# changed")


def change_context(project: Path) -> None:
    (project / "cdk.json").write_text('{"context": {"flag": false}}')


def change_lock(project: Path) -> None:
    (project / "infra/shipped/lambda.txt").write_text("boto3==1.1")


def add_a_file(project: Path) -> None:
    (project / "handlers/data.json").write_text("{}")


def change_data(project: Path) -> None:
    (project / "handlers/data.txt").write_text("changed")


def remove_a_file(project: Path) -> None:
    (project / "handlers/packed.py").unlink()


def rename_a_file(project: Path) -> None:
    (project / "infra/stack.py").rename(project / "infra/stacks.py")


@pytest.mark.parametrize(
    "change",
    [
        change_code,
        change_infra,
        change_app,
        change_context,
        change_lock,
        change_data,
        add_a_file,
        remove_a_file,
        rename_a_file,
    ],
)
def test_a_change_is_synthesised(
    project: Path, kept: Assemblies, change: Callable[[Path], None]
) -> None:
    template(project, kept)
    change(project)
    changed = template(project, kept)
    assert runs(project) == 2
    if change is change_code:
        assert changed["text"] == "changed"
    template(project, kept)
    assert runs(project) == 2


def package(project: Path) -> Path:
    """The one package of what was synthesised last."""
    [found] = (project.parent / "out").glob("asset.*")
    return found


def test_code_that_is_only_packed_is_packed_again(project: Path, kept: Assemblies) -> None:
    first = template(project, kept)
    (project / "handlers/packed.py").write_text("changed")
    changed = template(project, kept)
    assert runs(project) == 1
    assert (package(project) / "handlers/packed.py").read_text() == "changed"
    assert changed == {**first, "code": package(project).name.removeprefix("asset.") + ".zip"}
    assert changed["code"] != first["code"]
    assert template(project, kept) == changed
    (project / "handlers/packed.py").write_text("as it was")
    assert template(project, kept) == first
    assert (package(project) / "handlers/packed.py").read_text() == "as it was"
    assert runs(project) == 1


def test_code_that_is_not_packed_changes_nothing(project: Path, kept: Assemblies) -> None:
    first = template(project, kept)
    (project / "handlers/testing/double.py").write_text("changed")
    assert template(project, kept) == first
    assert runs(project) == 1


def test_a_name_that_depends_on_the_package_is_made_anew(project: Path, kept: Assemblies) -> None:
    (project / "app.py").write_text(APP.replace("VERSION", repr("AWS::Lambda::Version")))
    template(project, kept)
    (project / "handlers/packed.py").write_text("changed")
    template(project, kept)
    assert runs(project) == 2
    assert (package(project) / "handlers/packed.py").read_text() == "changed"


def test_going_back_is_going_back_to_what_was_kept(project: Path, kept: Assemblies) -> None:
    template(project, kept)
    change_code(project)
    assert template(project, kept)["text"] == "changed"
    (project / "handlers/text.py").write_text('TEXT = "as it was"')
    assert template(project, kept)["text"] == "as it was"
    assert runs(project) == 2


def test_another_setting_is_synthesised(project: Path, kept: Assemblies) -> None:
    assert template(project, kept, a=1)["context"] == {"a": 1}
    assert template(project, kept, a=2)["context"] == {"a": 2}
    assert template(project, kept, a=1)["context"] == {"a": 1}
    assert runs(project) == 2


def test_another_version_of_a_package_is_synthesised(
    project: Path, kept: Assemblies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = tmp_path / "site-packages"
    info = packages / "aws_cdk_lib-2.1.0.dist-info"
    info.mkdir(parents=True)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(packages))
    template(project, kept)
    info.rename(packages / "aws_cdk_lib-2.2.0.dist-info")
    template(project, kept)
    assert runs(project) == 2


def test_another_interpreter_is_another_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_of({})
    monkeypatch.setattr(sys, "version", "3.99.0")
    assert content_of({}) != before


def test_the_packages_of_this_environment_are_seen() -> None:
    assert any(info.startswith("aws_cdk_lib-") for info in assemblies.installed())


def test_what_the_interpreter_compiles_is_no_change(project: Path) -> None:
    before = content_of({}, project)
    compiled = project / "handlers" / "__pycache__" / "text.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"")
    assert content_of({}, project) == before


def test_every_source_is_there() -> None:
    """A source that was renamed would no longer be watched."""
    assert [
        name for name in (*assemblies.SOURCES, assemblies.CODE) if not (PROJECT / name).exists()
    ] == []


def test_the_callers_environment_changes_nothing(
    project: Path, kept: Assemblies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STRAY", "seen")
    assert template(project, kept)["stray"] is None


def test_what_was_changed_meanwhile_is_not_kept(project: Path, kept: Assemblies) -> None:
    with Synthesis({}, project.parent / "out", kept=kept, project=project) as synthesis:
        change_code(project)
        synthesis.assembly()
    assert template(project, kept)["text"] == "changed"
    assert runs(project) == 2


def test_the_rules_for_templates_that_go_to_aws_are_left_out(
    project: Path, kept: Assemblies
) -> None:
    """They take longer than the rest of it; ``make synth`` holds the templates against them."""
    assert template(project, kept)["validation"] == "false"


def test_addresses_are_put_in_after_it_was_kept(project: Path, kept: Assemblies) -> None:
    out = project.parent / "out"
    for port in ("1234", "5678"):
        with Synthesis({"url": "http://here/x"}, out, kept=kept, project=project) as synthesis:
            synthesis.assembly({"http://here": f"http://127.0.0.1:{port}"})
        context = json.loads((out / "App.template.json").read_text())["context"]
        assert context == {"url": f"http://127.0.0.1:{port}/x"}
    assert runs(project) == 1


def test_a_refusal_says_what_the_app_said_and_is_not_kept(project: Path, kept: Assemblies) -> None:
    for _ in range(2):
        with pytest.raises(LocalError, match="refuse contradicts accept"):
            template(project, kept, refuse=True)
    assert runs(project) == 2


PROGRAM: Final = """
class {kind}(Exception):
    pass

def deep(n):
    if n:
        return deep(n - 1)
    try:
        raise KeyError("first")
    except KeyError as error:
        raise {kind}({text!r}) from error

print("begun")
deep(30)
"""


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ("SettingsError", "operatons is not known here", "operatons is not known here"),
        ("ValueError", "one\n  two\nthree", "one\n  two\nthree"),
        ("Odd", "a: b", "Odd: a: b"),
        ("Odd", "", "Odd"),
    ],
)
def test_of_a_traceback_the_error_is_shown(kind: str, text: str, said: str) -> None:
    """Whatever Python's version makes of the lines in between."""
    command = [sys.executable, "-c", PROGRAM.format(kind=kind, text=text)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert last_error(done.stdout + done.stderr) == said


@pytest.mark.parametrize(
    "output", ["", "no traceback\nat all", "Traceback (most recent call last):\n  File"]
)
def test_of_anything_else_the_end_is_shown(output: str) -> None:
    assert last_error(output) == output
    assert last_error("x\n" * 100).count("x") == 25


def test_another_app_is_synthesised_each_time_as_its_cdk_json_says(project: Path) -> None:
    """What it depends on cannot be listed."""
    (project / "app.py").unlink()
    whole = APP.replace("VERSION", "None")
    text = 'json.loads(json.loads(os.environ["CDK_CONTEXT_JSON"])["fairlane"])'
    context = 'json.loads(os.environ["CDK_CONTEXT_JSON"])["fairlane"]'
    (project / "main.py").write_text(whole.replace(context, text))
    (project / "cdk.json").write_text(json.dumps({"app": "python main.py"}))
    for expected in (1, 2):
        with Synthesis({"vpc": None}, project.parent / "out", project=project) as synthesis:
            assert not synthesis.as_before
            synthesis.assembly()
        assert runs(project) == expected
        made = json.loads((project.parent / "out" / "App.template.json").read_text())
        assert made["context"] == {"vpc": None}, "a null unsets what the app chose"
        shutil.rmtree(project.parent / "out")


def test_a_folder_without_an_app_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match=rf"no cdk.json in {tmp_path}"):
        Synthesis({}, tmp_path / "out", project=tmp_path)


def test_leaving_early_ends_it(project: Path, kept: Assemblies) -> None:
    (project / "app.py").write_text("import time; time.sleep(600)")
    synthesis = Synthesis({}, project.parent / "out", kept=kept, project=project)
    with synthesis:
        process = synthesis._process
        assert isinstance(process, processes.Process)
        assert process.alive()
    assert not process.alive()


# --- damage ------------------------------------------------------------------------------------


def change_a_file(entry: Path) -> None:
    (entry / ASSEMBLY / "App.template.json").write_text("{}")


def lose_a_file(entry: Path) -> None:
    (entry / ASSEMBLY / "App.template.json").unlink()


def add_to_it(entry: Path) -> None:
    (entry / ASSEMBLY / "Other.template.json").write_text("{}")


def cut_the_digests(entry: Path) -> None:
    (entry / ENTRY).write_text((entry / ENTRY).read_text()[:20])


def other_digests(entry: Path) -> None:
    (entry / ENTRY).write_text("[]")


def remove_the_digests(entry: Path) -> None:
    (entry / ENTRY).unlink()


def remove_all(entry: Path) -> None:
    shutil.rmtree(entry / ASSEMBLY)


@pytest.mark.parametrize(
    "damage",
    [
        change_a_file,
        lose_a_file,
        add_to_it,
        cut_the_digests,
        other_digests,
        remove_the_digests,
        remove_all,
    ],
)
def test_a_damaged_one_is_synthesised_again(
    project: Path, kept: Assemblies, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    before = template(project, kept)
    (entry,) = (tmp_path / "kept").iterdir()
    damage(entry)
    assert template(project, kept) == before
    assert runs(project) == 2
    assert template(project, kept) == before
    assert runs(project) == 2


def test_two_may_keep_the_same(kept: Assemblies, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "file").write_text("x")
    content = Content("base", {})
    for _ in range(2):
        kept.keep(content, tmp_path / "made", [])
    assert kept.take(content, tmp_path / "out")
    assert [entry.name for entry in (tmp_path / "kept").iterdir()] == [content.key]


def test_what_was_not_used_for_longest_goes(kept: Assemblies, tmp_path: Path) -> None:
    (tmp_path / "made").mkdir()
    contents = [Content(str(number), {}) for number in range(KEPT + 2)]
    for content in contents[:KEPT]:
        kept.keep(content, tmp_path / "made", [])
    assert kept.take(contents[0], tmp_path / "out")
    for content in contents[KEPT:]:
        kept.keep(content, tmp_path / "made", [])
    there = [content for content in contents if kept.take(content, tmp_path / "out")]
    assert there == [contents[0], *contents[3:]]


def test_what_changes_while_it_is_packed_is_synthesised(
    project: Path, kept: Assemblies, tmp_path: Path
) -> None:
    template(project, kept)
    (project / "handlers/packed.py").write_text("changed")
    content = content_of({"flag": True, "fairlane": {}, "aws:cdk:bundling-stacks": []}, project)
    (project / "handlers/packed.py").write_text("changed again")
    assert not kept.take(content, tmp_path / "other", project)
    (project / "handlers/packed.py").write_text("changed")
    assert kept.take(content, tmp_path / "other", project)

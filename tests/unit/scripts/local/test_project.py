"""Which app a local stack is about."""

from __future__ import annotations

from pathlib import Path

from scripts.local.project import OWN, PACKAGES, is_checkout, project_of


def test_the_app_of_the_working_folder_comes_first(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text("{}")
    assert project_of(tmp_path) == tmp_path
    assert not is_checkout(tmp_path)


def test_elsewhere_it_is_the_checkouts(tmp_path: Path) -> None:
    assert project_of(tmp_path) == PACKAGES
    assert is_checkout(PACKAGES)


def test_an_app_that_lacks_one_of_fairlanes_folders_is_another(tmp_path: Path) -> None:
    for name in OWN:
        (tmp_path / name).mkdir()
    assert is_checkout(tmp_path)
    (tmp_path / "infra").rmdir()
    assert not is_checkout(tmp_path)

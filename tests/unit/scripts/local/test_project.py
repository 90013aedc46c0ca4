"""Which app a local stack is about."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.local.errors import LocalError
from scripts.local.project import OWN, PACKAGES, cdk_json_of, is_checkout, project_of


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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no cdk.json in"),
        ("{", "cdk.json cannot be read: Expecting property name"),
        ("[]", "cdk.json has to hold a JSON object"),
        ('{"context": []}', "and its context another one"),
    ],
)
def test_a_cdk_json_that_is_none_is_refused_in_a_sentence(
    tmp_path: Path, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / "cdk.json").write_text(text)
    with pytest.raises(LocalError, match=said):
        cdk_json_of(tmp_path)

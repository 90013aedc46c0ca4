"""What a local stack takes of the settings of ``cdk.json``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.local.errors import LocalError
from scripts.local.settings import chosen_in

ABOUT_AN_ACCOUNT: dict[str, Any] = {"profile": "prod", "small_lane": {"reserved_concurrency": 9}}


@pytest.mark.parametrize(
    ("context", "chosen"),
    [
        ({}, {}),
        ({"fairlane": ABOUT_AN_ACCOUNT}, {}),
        ({"fairlane": {**ABOUT_AN_ACCOUNT, "operations": "./ours"}}, {"operations": "./ours"}),
        ({"fairlane": json.dumps({"operations": "./ours"})}, {"operations": "./ours"}),
        ({"fairlane": {"operations": None}}, {}),
    ],
)
def test_it_has_the_teams_operations_and_nothing_about_an_account(
    context: dict[str, Any], chosen: dict[str, Any]
) -> None:
    assert chosen_in({"context": context}) == chosen


def test_without_a_context_nothing_is_chosen() -> None:
    assert chosen_in({}) == {}


@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"operatons": "./ours"}, r"has no setting operatons; is it operations\?$"),
        ({"x": 1}, "has no setting x$"),
        ("{", "cannot be read: "),
        ([1], "has to be an object"),
    ],
)
def test_what_is_no_setting_is_refused_by_name(context: object, said: str) -> None:
    with pytest.raises(LocalError, match=rf"^context\.fairlane of cdk\.json {said}"):
        chosen_in({"context": {"fairlane": context}})

"""The settings of pace."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from handlers.jobs.words.pace import PaceSettings


@pytest.mark.parametrize(
    "bad", [{"target": 1}, {"target": float("nan")}, {"floor_percent": 0}, {"floor_percent": 101}]
)
def test_settings_that_make_no_pace_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ValidationError, match=next(iter(bad))):
        PaceSettings.model_validate(bad)


def test_a_floor_is_never_nothing() -> None:
    assert PaceSettings().floor_percent > 0
    assert PaceSettings(floor_percent=100).floor_percent == 100

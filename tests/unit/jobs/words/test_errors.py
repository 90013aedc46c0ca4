"""What a caller may conclude from an error."""

from __future__ import annotations

import pytest

from handlers.jobs.words.errors import JobFailed, Reason, Refused, Transient, UploadGone, Why


def test_an_error_without_words_says_what_its_kind_is() -> None:
    assert str(UploadGone()) == "The uploaded file was deleted, expired or replaced."
    assert str(UploadGone("version 2")) == "version 2"
    assert Transient(retry_after_ms=5).retry_after_ms == 5
    assert (JobFailed("GONE").reason, str(JobFailed("GONE", "no file"))) == ("GONE", "no file")


@pytest.mark.parametrize(
    ("whys", "passes"),
    [
        ([Why.CONFLICT, None, Why.THROTTLED], True),
        ([Why.CONFLICT, Why.CONDITION], False),
        ([Why.INVALID], False),
        ([None, None], False),
        ([], False),
    ],
)
def test_contention_is_only_what_goes_away_by_itself(
    whys: list[Why | None], *, passes: bool
) -> None:
    refused = Refused([None if why is None else Reason(why) for why in whys])
    assert refused.only_contention is passes


def test_a_refusal_is_read_by_position() -> None:
    reason = Reason(Why.CONDITION)
    refused = Refused([None, reason])
    assert [refused.reason(at) for at in (0, 1, 2)] == [None, reason, None]
    assert str(refused) == "transaction refused (1: condition)"

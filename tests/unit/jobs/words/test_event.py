"""The key of an event tells it from all others of its job."""

from __future__ import annotations

from dataclasses import replace

from handlers.jobs.words.event import ADDRESS, EVENT_BUS, EventType, JobEvent

EVENT = JobEvent("j", "acme", "small", 7, EventType.STARTED, EVENT_BUS, None, "{}")


def test_every_try_and_every_listener_gets_the_same_key() -> None:
    again = replace(EVENT, tries=4, listener=ADDRESS, to="https://example.org")
    assert EVENT.key == again.key == "j:started:7"


def test_other_events_of_the_job_have_other_keys() -> None:
    others = [replace(EVENT, what=EventType.ENDED), replace(EVENT, fence=8)]
    assert len({EVENT.key, *(other.key for other in others)}) == 3

"""The listeners of events: the bus, and the addresses of requests."""

from __future__ import annotations

import pytest

from handlers.effects.listeners import REST, AddressListener, BusListener
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, NotTaken
from handlers.testing.runtime import ManualRuntime
from tests.support.listeners import HOOK, Bus, event, failed


def test_the_bus_gets_an_entry_of_its_kind() -> None:
    client = Bus([{"FailedEntryCount": 0}])
    BusListener(client, "changes", ManualRuntime()).deliver_event(event())  # type: ignore[arg-type]  # the one call
    [entry] = client.entries
    assert (entry["EventBusName"], entry["DetailType"]) == ("changes", "Job Ended")
    assert entry["Detail"] == '{"key":"k"}'


def test_a_bus_that_fails_is_left_alone_for_a_while() -> None:
    runtime = ManualRuntime()
    client = Bus([failed("ThrottlingException"), {"FailedEntryCount": 0}])
    listener = BusListener(client, "changes", runtime)  # type: ignore[arg-type]  # the one call
    for _ in range(3):
        with pytest.raises(Transient):
            listener.deliver_event(event())
    assert len(client.entries) == 1
    runtime.sleep(REST)
    listener.deliver_event(event())
    assert len(client.entries) == 2


def test_a_bus_may_refuse_for_good() -> None:
    client = Bus([failed("MalformedDetail")])
    with pytest.raises(NotTaken, match="MalformedDetail"):
        BusListener(client, "changes", ManualRuntime()).deliver_event(event())  # type: ignore[arg-type]  # the one call


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "::1"])
def test_a_name_that_points_inside_is_not_called(address: str) -> None:
    listener = AddressListener(lambda: b"s" * 16, ManualRuntime(), ask=lambda _h, _p: [address])
    with pytest.raises(Transient, match="must not be called"):
        listener.deliver_event(event(listener=ADDRESS, to=HOOK))

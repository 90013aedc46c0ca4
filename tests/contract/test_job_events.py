"""Who is told of jobs: what each deployed part can reach, and what arrives at an address."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.bootstrap import _address_listener, _address_problem, _listeners
from handlers.effects.listeners import AddressListener
from handlers.effects.webhook import Webhook
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, EVENT_BUS, EventType, JobEvent, NotTaken
from handlers.settings import EffectSettings
from handlers.testing.runtime import START, ManualRuntime
from tests.support.receiver import Got, Receiver, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET: Final = b"a secret of some length"
EVENT: Final = JobEvent(
    "j", "acme", "small", 7, EventType.ENDED, ADDRESS, None, '{"event":"ended"}'
)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with serving() as running:
        yield running


def key_of(secret: bytes, tenant: str) -> bytes:
    """As docs/how-to/webhooks.md says."""
    made = hmac.new(secret, b"fairlane notify v1:" + tenant.encode(), hashlib.sha256)
    return made.hexdigest().encode()


def signed_by(key: bytes, got: Got) -> bool:
    signed = f"{got.headers['Fairlane-Timestamp']}.".encode() + got.body
    mac = hmac.new(key, signed, hashlib.sha256).hexdigest()
    return got.headers["Fairlane-Signature"] == f"v1={mac}"


def tell(receiver: Receiver) -> None:
    listener = AddressListener(lambda: SECRET, ManualRuntime(), loopback=True)
    listener.deliver_event(replace(EVENT, to=receiver.url))


def test_an_address_gets_the_event_signed_with_the_same_key_each_time(receiver: Receiver) -> None:
    for _ in range(2):
        tell(receiver)
    first, second = receiver.got
    assert json.loads(first.body) == {"event": "ended"}
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] == "j:ended:7"
    timestamp = first.headers["Fairlane-Timestamp"]
    assert timestamp == str(START // 1000)
    assert signed_by(key_of(SECRET, "acme"), first)


def test_c103_each_tenant_has_a_key_of_its_own(receiver: Receiver) -> None:
    """Who can verify the notifications of one tenant cannot forge those of another, or those of the
    operator's own webhook."""
    tenants = ("acme", "acme2", "a", "A", "é")
    listener = AddressListener(lambda: SECRET, ManualRuntime(), loopback=True)
    for tenant in tenants:
        listener.deliver_event(replace(EVENT, tenant=tenant, to=receiver.url))
    batch = Batch("job", 0, "acme", "set_fields", [Projection("a", 2, None)])
    Webhook(receiver.url, lambda: SECRET, ManualRuntime(), loopback=True).deliver(batch)
    keys = [*(key_of(SECRET, tenant) for tenant in tenants), SECRET]
    assert [[signed_by(key, got) for key in keys] for got in receiver.got] == [
        [one == other for other in range(len(keys))] for one in range(len(keys))
    ]


def test_c103_a_new_secret_changes_every_key_at_the_next_delivery(receiver: Receiver) -> None:
    secrets = iter([SECRET, b"the new one of some length"])
    listener = AddressListener(lambda: next(secrets), ManualRuntime(), loopback=True)
    for _ in range(2):
        listener.deliver_event(replace(EVENT, to=receiver.url))
    old, new = receiver.got
    assert signed_by(key_of(SECRET, "acme"), old)
    assert signed_by(key_of(b"the new one of some length", "acme"), new)


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, NotTaken), (410, Transient), (429, Transient), (503, Transient), (302, Transient)],
)
def test_what_an_address_answers(receiver: Receiver, status: int, error: type[Exception]) -> None:
    receiver.status = status
    with pytest.raises(error):
        tell(receiver)


def settings(**changed: Any) -> EffectSettings:
    return EffectSettings.model_validate(changed)


NOTIFYING: Final = {"notify": True, "webhook_secret_arn": "arn:aws:secretsmanager:x"}


def test_only_a_deployment_that_notifies_takes_addresses() -> None:
    assert _address_problem(settings()) is None
    problem = _address_problem(settings(**NOTIFYING))
    assert problem is not None
    assert problem("https://example.org/x") is None
    assert problem("https://10.0.0.1/x") == "is not on the public internet"


def test_only_a_deployment_with_a_bus_tells_it() -> None:
    runtime = ManualRuntime()
    assert _listeners(settings(), runtime) == {}
    assert _listeners(settings(event_bus="bus"), runtime).keys() == {EVENT_BUS}


def test_addresses_are_told_with_a_key_of_the_deployments_secret(receiver: Receiver) -> None:
    chosen = settings(notify=True, webhook_secret="x" * 16, webhook_loopback=True)
    _address_listener(chosen, ManualRuntime()).deliver_event(replace(EVENT, to=receiver.url))
    [got] = receiver.got
    assert signed_by(key_of(b"x" * 16, "acme"), got)


@pytest.mark.parametrize(
    "given",
    [
        {"notify": True},
        {"notify": True, "webhook_secret_arn": "a", "webhook_secret_parameter": "b"},
        {"notify": True, "webhook_secret": "x" * 16},
    ],
)
def test_notifying_needs_one_secret(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="secret"):
        settings(**given)

"""The webhook's requests, as a server on loopback gets them."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import hmac
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from urllib3.exceptions import ConnectTimeoutError

from handlers.effects import webhook
from handlers.effects.listeners import AddressListener
from handlers.effects.webhook import MAX_REPLY, Webhook
from handlers.jobs.effects.rows import replay_effect
from handlers.jobs.effects.run import effect_of_item
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.event import ADDRESS, NotTaken
from handlers.jobs.words.states import State
from handlers.testing.runtime import START, ManualRuntime
from tests.support.jobs import now
from tests.support.listeners import event
from tests.support.receiver import Receiver, serving
from tests.support.sinks import Index, a_world, recover, run_job

if TYPE_CHECKING:
    from pathlib import Path

SECRET: Final = b"a secret of some length"
NAME: Final = "hook.example"
LONG: Final = 600.0
"""Seconds no answer takes, unless a test fails."""
BATCH: Final = Batch("job", 0, "acme", "set_fields", [Projection("a", 2, None)])


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "CONNECT_TIMEOUT", LONG)
    monkeypatch.setattr(webhook, "READ_TIMEOUT", LONG)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with serving() as running:
        yield running


def hook(receiver: Receiver) -> Webhook:
    return Webhook(receiver.url, lambda: SECRET, ManualRuntime(), loopback=True, total_timeout=LONG)


def test_a_delivery_is_signed_and_has_the_chunks_key(receiver: Receiver) -> None:
    sink = hook(receiver)
    for _ in range(2):
        assert sink.deliver(BATCH).refused == {}

    first, second = receiver.got
    assert first.path == "/in?x=1"
    assert first.headers["Host"] == f"127.0.0.1:{receiver.port}"
    assert first.headers["Content-Type"] == "application/json"
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"] == "job:0"
    assert json.loads(first.body)["records"] == [{"id": "a", "version": 2, "gone": True}]
    timestamp = first.headers["Fairlane-Timestamp"]
    assert timestamp == str(START // 1000)
    mac = hmac.new(SECRET, f"{timestamp}.".encode() + first.body, hashlib.sha256).hexdigest()
    assert first.headers["Fairlane-Signature"] == f"v1={mac}"


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_refused_is_refused_for_all_its_records(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.text = status, b"no\n such  thing"
    assert hook(receiver).deliver(BATCH).refused == {"a": f"answered {status}: no such thing"}


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_when_asked(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.headers = status, {"Retry-After": "9"}
    with pytest.raises(Transient) as raised:
        hook(receiver).deliver(BATCH)
    assert raised.value.retry_after_ms == 9000


def test_c100_what_is_not_said_of_the_records_refuses_none(receiver: Receiver) -> None:
    """Said of the address or the secret, such as 401 and 404, or of the moment."""
    receiver.text = b"go away"
    of_the_records = {400, 413, 422}
    without_a_body = {304}
    for status in sorted(set(range(300, 600)) - of_the_records - without_a_body):
        receiver.status = status
        with pytest.raises(Transient, match=f"answered {status}"):
            hook(receiver).deliver(BATCH)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_c100_a_receiver_that_knows_us_again_gets_what_it_missed(
    receiver: Receiver, status: int
) -> None:
    world = replace(a_world(Index(), max_effect_tries=3), sinks={"index": hook(receiver)})
    receiver.status = status
    job = run_job(world, 3)
    recover(world, 10)
    parked = now(world, job)
    assert (parked.state, parked.effects_parked, parked.effects_refused) == (State.SETTLING, 1, 0)

    receiver.status = 204
    receiver.got.clear()
    [row] = world.store.query_partition(f"JOB#{job.id}", sk_prefix="EFFECT#").found
    replay_effect(world, effect_of_item(row.item))
    recover(world, 1)
    ended = now(world, job)
    assert (ended.state, ended.effects_done, ended.effects_refused) == (State.SUCCEEDED, 1, 0)
    [got] = receiver.got
    assert [each["id"] for each in json.loads(got.body)["records"]] == ["r000", "r001", "r002"]


@pytest.mark.parametrize(
    ("status", "raised"), [(401, Transient), (404, Transient), (400, NotTaken)]
)
def test_c100_a_jobs_event_is_parked_at_once_only_when_it_is_refused_itself(
    receiver: Receiver, status: int, raised: type[Exception]
) -> None:
    receiver.status = status
    listener = AddressListener(lambda: SECRET, ManualRuntime(), loopback=True)
    with pytest.raises(raised, match=f"answered {status}"):
        listener.deliver_event(event(listener=ADDRESS, to=receiver.url))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(receiver: Receiver, status: int) -> None:
    receiver.status, receiver.headers = status, {"Location": receiver.url}
    with pytest.raises(Transient, match=f"answered {status}"):
        hook(receiver).deliver(BATCH)
    assert len(receiver.got) == 1


def test_of_a_long_answer_only_the_start_is_read(receiver: Receiver) -> None:
    receiver.status, receiver.text = 400, b"x" * (MAX_REPLY * 200)
    sink = hook(receiver)
    refused = sink.deliver(BATCH).refused
    assert len(refused["a"]) == 300
    receiver.status, receiver.text = 200, b""
    assert sink.deliver(BATCH).refused == {}


def test_nobody_listening_is_tried_again(receiver: Receiver) -> None:
    with serving() as other:
        closed = hook(other)
    with pytest.raises(Transient, match="cannot be reached"):
        closed.deliver(BATCH)


def test_an_answer_that_drips_in_is_not_waited_for() -> None:
    """Each byte comes in time, the whole answer never would."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            while not over.wait(0.05):
                connection.sendall(b"H")

    server = threading.Thread(target=drip, daemon=True)
    server.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
    sink = Webhook(url, lambda: SECRET, ManualRuntime(), loopback=True, total_timeout=0.3)
    try:
        with pytest.raises(Transient, match=r"no whole answer within 0\.3 s"):
            sink.deliver(BATCH)
    finally:
        over.set()
        server.join()
        listener.close()


def test_c101_one_deadline_is_over_all_addresses_of_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name with many answers behind which nothing is: each connection takes its time-out."""
    tried: list[str] = []
    ended = threading.Event()

    def dead(_: Webhook, address: str, *__: object) -> None:
        tried.append(address)
        ended.wait(0.2)
        raise ConnectTimeoutError

    monkeypatch.setattr(Webhook, "_send", dead)
    many = [f"93.184.216.{n}" for n in range(1, 200)]
    sink = Webhook(
        "https://hook.example/in",
        lambda: SECRET,
        ManualRuntime(),
        ask=lambda *_: many,
        total_timeout=0.5,
    )
    with pytest.raises(Transient, match=r"no whole answer within 0\.5 s"):
        sink.deliver(BATCH)
    ended.set()  # whoever is still waiting goes on at once, and may not try another
    for thread in threading.enumerate():
        if thread.name == "webhook":
            thread.join()
    assert 1 <= len(tried) <= 4


def test_loopback_is_not_called_unless_allowed(receiver: Receiver) -> None:
    sink = Webhook(receiver.url, lambda: SECRET, ManualRuntime())
    with pytest.raises(Transient, match="must not be called"):
        sink.deliver(BATCH)
    assert receiver.got == []


# --- https -------------------------------------------------------------------------------------


def certificate(folder: Path, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's side for a name, and the only trust there is in it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    file = folder / "server.pem"
    file.write_bytes(
        pem
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cadata=pem.decode())


def test_what_is_called_is_the_address_that_was_checked(tmp_path: Path) -> None:
    """The name means something else at every look; the certificate is still the name's."""
    server, trust = certificate(tmp_path, NAME)
    asked: list[str] = []

    def ask(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["10.0.0.1"]

    with serving(server) as receiver:
        url = f"https://{NAME}:{receiver.port}/in"
        sink = Webhook(
            url,
            lambda: SECRET,
            ManualRuntime(),
            loopback=True,
            ask=ask,
            trust=trust,
            total_timeout=LONG,
        )
        assert sink.deliver(BATCH).refused == {}
        with pytest.raises(Transient, match="must not be called"):
            sink.deliver(BATCH)
        assert asked == [NAME, NAME]
        [got] = receiver.got
        assert got.headers["Host"] == f"{NAME}:{receiver.port}"


def test_another_names_certificate_is_not_taken(tmp_path: Path) -> None:
    server, trust = certificate(tmp_path, "other.example")
    with serving(server) as receiver:
        url = f"https://{NAME}:{receiver.port}/in"
        sink = Webhook(
            url,
            lambda: SECRET,
            ManualRuntime(),
            loopback=True,
            ask=lambda *_: ["127.0.0.1"],
            trust=trust,
            total_timeout=LONG,
        )
        with pytest.raises(Transient, match="cannot be reached"):
            sink.deliver(BATCH)
        assert receiver.got == []

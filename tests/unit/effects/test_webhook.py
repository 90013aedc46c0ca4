"""What a webhook says, and where it is never sent. The requests themselves: tests/contract."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from handlers.effects.addresses import addresses, permitted
from handlers.effects.notice import notice
from handlers.effects.retry_after import retry_after_ms
from handlers.effects.secret import KEPT, Secret
from handlers.effects.webhook import Webhook, signature
from handlers.jobs.words.effect import Batch, Projection
from handlers.jobs.words.errors import Transient
from handlers.jobs.words.limits import MAX_CHUNK
from handlers.jobs.words.operation import Record
from handlers.testing.runtime import ManualRuntime

if TYPE_CHECKING:
    from collections.abc import Sequence

PUBLIC: Final = (
    "93.184.216.34",
    "2606:2800:220:1::1",
    "192.0.1.1",
    "100.128.0.1",
    "223.255.255.255",
    "::ffff:93.184.216.34",
    "64:ff9b::5db8:d822",
    "2002:5db8:d822::1",
    "2001:200::1",
)
PRIVATE: Final = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "224.0.0.1",
    "255.255.255.255",
    "198.18.0.1",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
    "2002:7f00:1::",
    # C104: public to one version of Python, and private to another.
    "::169.254.170.2",
    "::ffff:0:a9fe:aa02",
    "fec0::1",
    "64:ff9b:1::a9fe:aa02",
    "64:ff9b:1::5db8:d822",
    "192.0.0.9",
    "192.88.99.1",
    "2001::1",
    "2001:1::1",
    "2001:20::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "4000::1",
    "not an address",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_the_internet_may_be_called(address: str) -> None:
    assert permitted(address, loopback=False)


@pytest.mark.parametrize("address", PRIVATE)
def test_nothing_else_may(address: str) -> None:
    assert not permitted(address, loopback=False)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", *PUBLIC])
def test_loopback_may_be_where_a_developer_says_so(address: str) -> None:
    assert permitted(address, loopback=True)


@pytest.mark.parametrize("address", ["10.0.0.1", "169.254.169.254", "0.0.0.0", "::ffff:10.0.0.1"])
def test_and_no_other_private_address_with_it(address: str) -> None:
    assert not permitted(address, loopback=True)


def test_one_bad_address_among_good_ones_is_enough() -> None:
    with pytest.raises(Transient, match=r"hook\.example is at 10\.0\.0\.1, which must not be"):
        addresses("hook.example", 443, lambda *_: [PUBLIC[0], "10.0.0.1"], loopback=False)


def test_a_name_without_an_address_is_tried_again() -> None:
    def fails(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    def finds_none(host: str, port: int) -> Sequence[str]:
        return []

    for ask in (fails, finds_none):
        with pytest.raises(Transient, match="has no address"):
            addresses("hook.example", 443, ask, loopback=False)


def test_a_name_that_turns_private_is_not_called() -> None:
    """No connection is opened: it would fail this test."""
    hook = Webhook(
        "https://hook.example/in",
        lambda: b"secret",
        ManualRuntime(),
        ask=lambda *_: ["169.254.169.254"],
    )
    with pytest.raises(Transient, match="must not be called"):
        hook.deliver(batch(Projection("a", 1, None)))


def batch(*records: Projection) -> Batch:
    return Batch("job", 96, "acme", "set_fields", records)


def test_a_notice_says_which_records_and_nothing_of_what_they_hold() -> None:
    record = Record("acme", "é", 4, {"secret": "word"})
    assert json.loads(notice(batch(Projection("é", 4, record), Projection("b", 7, None)))) == {
        "key": "job:96",
        "job_id": "job",
        "position": 96,
        "tenant": "acme",
        "operation": "set_fields",
        "records": [
            {"id": "é", "version": 4, "gone": False},
            {"id": "b", "version": 7, "gone": True},
        ],
    }


@pytest.mark.parametrize("worst", ["\U0001f600" * 64, "\u05d0" * 128, '"' * 256, "x" * 256])
def test_the_largest_notice_fits_wherever_it_goes(worst: str) -> None:
    assert len(worst.encode()) == 256
    records = [Projection(worst, 2**63 - 1, None)] * MAX_CHUNK
    assert len(notice(Batch("j" * 32, 10**9, worst, "operation", records))) < 200_000


def test_the_signature_is_of_time_and_body() -> None:
    # printf '1700000000.{}' | openssl dgst -sha256 -hmac secret
    assert signature(b"secret", "1700000000", b"{}") == (
        "v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163"
    )


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (None, None),
        ("", None),
        ("0", 0),
        (" 120 ", 120_000),
        ("1.5", None),
        ("-3", None),
        ("9" * 40, None),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60_000),
        ("Tue, 14 Nov 2023 22:00:00 GMT", 0),
        ("Tue, 99 Nov 2023 22:00:00 GMT", None),
        ("whenever", None),
    ],
)
def test_when_to_come_back(value: str | None, asked: int | None) -> None:
    assert retry_after_ms(value, 1_700_000_000_000) == asked


def test_a_stored_secret_is_read_again_after_a_while() -> None:
    runtime, values = ManualRuntime(), iter(["one", "two"])
    secret = Secret(lambda: next(values), runtime)
    assert [secret(), secret()] == [b"one", b"one"]
    runtime.sleep(KEPT)
    assert secret() == b"two"
    assert "two" not in repr(secret)

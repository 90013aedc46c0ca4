"""Where a webhook may be sent: never into the network that the workers run in."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from ..jobs.words.errors import Transient

IpAddress: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""(host, port) -> its addresses. Raises OSError."""

# IANA's special-purpose registries as of 2025, by prefix. ``is_global`` of the standard library is
# not asked: what it says of an address differs from version to version.
_NOT_PUBLIC: Final = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a carrier's NAT
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local: the instance's and the task's metadata
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4, which are no more
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
_UNICAST: Final = IPv6Network("2000::/3")
"""The part of IPv6 that is given out; every other address has a special meaning."""
_NOT_PUBLIC_6: Final = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "3fff::/20",  # documentation
        ),
    )
)
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_NAT64: Final = IPv6Network("64:ff9b::/96")


def resolve(host: str, port: int) -> Sequence[str]:
    """The host's addresses, as the system resolves them. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def addresses(host: str, port: int, ask: Resolve, *, loopback: bool) -> Sequence[str]:
    """The host's addresses, all of them checked. A connection has to go to one of these, since the
    next answer for the same name can be another. loopback: allow loopback as well.

    Raises Transient when there is none, or one that must not be called: a name that points into
    a private network is a mistake or an attack, and either may be over later."""
    try:
        found = ask(host, port)
    except (OSError, UnicodeError) as error:
        raise Transient(f"{host} has no address: {error}") from error
    for text in found:
        if not permitted(text, loopback=loopback):
            raise Transient(f"{host} is at {text}, which must not be called")
    if not found:
        raise Transient(f"{host} has no address")
    return found


def problem_of(url: str, *, loopback: bool) -> str | None:
    """Why a URL must not be called, as far as that can be said without asking for the name's
    addresses; they are checked whenever it is called. loopback: allow loopback, and http."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is not an address that can be called"
    if parts.scheme != "https" and not (loopback and parts.scheme == "http"):
        return "must be https"
    if _is_address(host):
        return None if permitted(host, loopback=loopback) else "is not on the public internet"
    name = host.rstrip(".").lower()
    if name == "localhost":
        return None if loopback else "is not on the public internet"
    if "." not in name or not name.isascii() or not name.rpartition(".")[2][:1].isalpha():
        return "must name a host on the public internet"
    return None


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def permitted(text: str, *, loopback: bool) -> bool:
    """Whether the address is on the public internet, or loopback where that is allowed."""
    try:
        address = ip_address(text)
    except ValueError:
        return False  # such as one with an interface: fe80::1%eth0
    if loopback and address.is_loopback:
        return True
    return _public(address)


def _public(address: IpAddress) -> bool:
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC)
    if (inside := _translated(address)) is not None:
        return _public(inside)
    return address in _UNICAST and not any(address in network for network in _NOT_PUBLIC_6)


def _translated(address: IPv6Address) -> IPv4Address | None:
    """The IPv4 address that a translating IPv6 address stands for; None for any other address."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(address.packed[-4:])
    return IPv4Address(address.packed[2:6]) if address in _SIX_TO_FOUR else None

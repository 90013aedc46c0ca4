"""Where a webhook may be sent: never into the network that the workers run in."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from ..jobs.errors import Transient

IpAddress: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str, int], Sequence[str]]
"""(host, port) -> its addresses. Raises OSError."""

_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOW_32: Final = 2**32 - 1


def resolve(host: str, port: int) -> Sequence[str]:
    """As the system does it. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def addresses(host: str, port: int, ask: Resolve, *, loopback: bool) -> Sequence[str]:
    """The host's addresses, all of them checked: what is connected to has to be one of these, for
    the next answer for the same name can be another. loopback: allow loopback as well.

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
    return all(one.is_global and not one.is_multicast for one in _all_of(address))


def _all_of(address: IpAddress) -> Sequence[IpAddress]:
    """The address, and those it is translated to on its way."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inside: list[IpAddress] = [address]
    if address.sixtofour is not None:
        inside.append(address.sixtofour)
    if address.teredo is not None:
        inside += address.teredo
    if address in _NAT64:
        inside.append(IPv4Address(int(address) & _LOW_32))
    return inside

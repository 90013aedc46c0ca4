"""The order in which a stored list is walked: that of a seeded hash, not of the ids.

Ids often come sorted. Walked in that order, all writes of a minute would fall into one range of
keys, which one partition of the table serves; permuted, they fall anywhere.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def place_of(id_: str, seed: str) -> int:
    """Where the id comes in the order: a number that says nothing about the id."""
    digest = blake2b(id_.encode(), digest_size=7, key=seed.encode()[:64]).digest()
    return int.from_bytes(digest)


def permuted(ids: Iterable[str], seed: str) -> list[str]:
    """A list that fits into memory, in the order of the seed."""
    return sorted(ids, key=lambda id_: (place_of(id_, seed), id_))

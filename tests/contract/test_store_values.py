"""What is stored comes back as it was: numbers, texts, keys and names."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.writes import Equals, Key, Put, Table, Update

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Store
    from handlers.jobs.words.writes import Item, Write

KEY: Final = Key("p", "s")


class Colour(StrEnum):
    RED = "red"


NUMBERS: Final[list[tuple[int | Decimal, int | Decimal]]] = [
    # written, read
    (0, 0),
    (-7, -7),
    (10**38 - 1, 10**38 - 1),
    (1_764_400_000_123, 1_764_400_000_123),
    (Decimal("0.1"), Decimal("0.1")),
    (Decimal("19.99"), Decimal("19.99")),
    (Decimal("2.50"), Decimal("2.5")),
    (Decimal("1.0"), 1),
    (Decimal("1E+2"), 100),
    (Decimal("-0"), 0),
    (Decimal("0.1234567890123456789012345678901234567"),) * 2,
    (Decimal("1E-130"), Decimal("1E-130")),
    (Decimal("9.9999999999999999999999999999999999999E+125"),) * 2,
    (10**100, Decimal("1E+100")),
]


@pytest.mark.parametrize(("written", "read"), NUMBERS, ids=str)
def test_numbers_stay_exact(store: Store, written: int | Decimal, read: int | Decimal) -> None:
    store.transact("put", [Put(KEY, {"n": written, "in": [{"n": written}]})])
    item: Any = store.get(KEY)
    assert item == {"n": read, "in": [{"n": read}]}
    assert item["n"] == written
    assert type(item["n"]) is type(item["in"][0]["n"]) is type(read)


VALUES: Final[list[tuple[Any, Any]]] = [
    # written, read
    (True, True),
    (None, None),
    ("", ""),
    ([], []),
    ({}, {}),
    (("a", ("b",)), ["a", ["b"]]),
    ({"deep": [{"x": None}, False]}, {"deep": [{"x": None}, False]}),
    (Colour.RED, "red"),
]


@pytest.mark.parametrize(("written", "read"), VALUES, ids=str)
def test_values_come_back(store: Store, written: Any, read: Any) -> None:
    store.transact("put", [Put(KEY, {"v": written})])
    item: Any = store.get(KEY)
    assert item == {"v": read}
    assert type(item["v"]) is type(read)


TEXTS: Final = [
    "007",
    "07",
    "7",
    " ",
    "a\u0301",
    "á",
    "👩\u200d🚀",
    "שלום",
    "\u202egnp.exe",
    "a\x00b",
    "line\nbreak",
    "#",
    "%23",
    "x" * 1024,
]


def test_keys_are_compared_byte_for_byte(store: Store) -> None:
    writes: list[Write] = [
        Put(Key("tenant", text, table), {"at": f"{i}", "text": text})
        for i, text in enumerate(TEXTS)
        for table in Table
    ]
    store.transact("put", writes)
    for i, text in enumerate(TEXTS):
        expected: Item = {"at": f"{i}", "text": text}
        assert store.get(Key("tenant", text)) == expected
        assert store.get(Key("tenant", text, Table.RECORDS)) == expected


ATTRIBUTES: Final = ["size", "a.b", "a-b", "a b", "#x", ":y", "0", "ключ", "x" * 200]


def test_any_attribute_name_is_good(store: Store) -> None:
    store.transact("put", [Update(KEY, set={name: name for name in ATTRIBUTES})])
    store.transact(
        "update",
        [
            Update(
                KEY,
                set=dict.fromkeys(ATTRIBUTES[:3], 1),
                remove=tuple(ATTRIBUTES[3:6]),
                when=tuple(Equals(name, name) for name in ATTRIBUTES),
            )
        ],
    )
    assert store.get(KEY) == {
        **dict.fromkeys(ATTRIBUTES[:3], 1),
        **{name: name for name in ATTRIBUTES[6:]},
    }

"""The airports as records: all of them, once, and nothing lost in the conversion."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

import airportsdata
import pytest

from scripts.local.airports import airports_by_tenant
from scripts.local.errors import LocalError

SOURCE: Mapping[str, Mapping[str, object]] = dict(airportsdata.load("ICAO"))


def test_every_airport_belongs_to_one_tenant() -> None:
    codes = Counter(code for airports in airports_by_tenant().values() for code in airports)
    assert codes == Counter(SOURCE.keys())


def test_tenants_differ_in_size() -> None:
    sizes = sorted(map(len, airports_by_tenant().values()))
    assert len(sizes) >= 8
    assert sizes[0] * 10 < sizes[-1]


def test_fields_are_the_sources_without_empty_ones() -> None:
    for airports in airports_by_tenant().values():
        for code, fields in airports.items():
            source = SOURCE[code]
            assert set(fields) == {k for k, v in source.items() if v != "" and k != "icao"}
            assert all(fields[name] == _expected(source[name]) for name in fields)


def test_numbers_are_exact_and_names_keep_their_letters() -> None:
    kennedy = airports_by_tenant()["usa"]["KJFK"]
    assert kennedy["lat"] == Decimal("40.639928")
    names = "".join(str(f["name"]) for f in airports_by_tenant()["europe"].values())
    assert not names.isascii()


def _expected(value: object) -> object:
    return Decimal(repr(value)) if isinstance(value, float) else value


def test_without_the_data_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airportsdata", None)
    airports_by_tenant.cache_clear()
    with pytest.raises(LocalError, match="need airportsdata, which is not installed: run `make"):
        airports_by_tenant()

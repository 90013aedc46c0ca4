"""About 28,000 airports as records of several tenants: input people recognise, with unicode
names, missing fields and ids with leading zeros."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from . import records
from .errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from handlers.aws.attributes import Attributes

Fields: TypeAlias = Mapping[str, str | Decimal]
"""One airport's attributes, without its id; empty ones are left out."""

COUNTRY_TENANTS: Final = {"US": "usa", "BR": "brazil", "AU": "australia", "CA": "canada"}
"""Countries with more than a thousand airports are tenants of their own."""
REGION_TENANTS: Final = {
    "America": "americas",
    "Europe": "europe",
    "Asia": "asia",
    "Africa": "africa",
    "Pacific": "pacific",
}
"""The others go by the region of their time zone; what is left are islands and the poles."""
OTHER_TENANT: Final = "islands"


@cache
def airports_by_tenant() -> Mapping[str, Mapping[str, Fields]]:
    """tenant -> record id (the ICAO code, or the local one) -> fields. The same on every call and
    machine with the same version of the data. Raises LocalError without them."""
    try:
        import airportsdata  # noqa: PLC0415  only a checkout has it
    except ModuleNotFoundError as error:
        raise LocalError(
            f"the records of airports need {error.name}, which is not installed: run `make setup` "
            "in the checkout, or choose --records FILE or --empty"
        ) from error

    tenants: dict[str, dict[str, Fields]] = defaultdict(dict)
    for code, airport in sorted(airportsdata.load("ICAO").items()):
        tenants[_tenant(airport)][code] = _fields(airport)
    return dict(tenants)


def load(
    dynamodb: DynamoDBClient,
    table: str,
    *,
    tenants: Mapping[str, Mapping[str, Fields]] | None = None,
    tenant_key: str = "tenant",
    id_key: str = "id",
    loaded: Callable[[int], None] = lambda _: None,
) -> int:
    """Write the records, each with ``version`` 1, as ``records.load`` does."""
    tenants = airports_by_tenant() if tenants is None else tenants
    items = [
        _item({tenant_key: tenant, id_key: code, "version": Decimal(1), **fields})
        for tenant, airports in tenants.items()
        for code, fields in airports.items()
    ]
    return records.load(dynamodb, table, items, loaded=loaded)


def _tenant(airport: Mapping[str, object]) -> str:
    region = str(airport["tz"]).partition("/")[0]
    by_region = REGION_TENANTS.get(region, OTHER_TENANT)
    return COUNTRY_TENANTS.get(str(airport["country"]), by_region)


def _fields(airport: Mapping[str, object]) -> Fields:
    return {
        name: Decimal(str(value)) if isinstance(value, int | float) else str(value)
        for name, value in airport.items()
        if name != "icao" and value not in ("", None)
    }


def _item(item: Mapping[str, str | Decimal]) -> Attributes:
    return {
        name: {"N": format(value, "f")} if isinstance(value, Decimal) else {"S": value}
        for name, value in item.items()
    }

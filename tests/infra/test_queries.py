"""Where a deployment looks for the records of a query, and that it may."""

from __future__ import annotations

import pytest

from handlers.settings import PREFIX, SettingsError, WorkSettings
from tests.infra.grants import DOMAIN, NAT, SEARCH, actions_on, listed, rights
from tests.infra.synthesis import Synthesised, settings_of, synthesise

LOOKING = ("BulkLane", "Api")


@pytest.fixture(scope="module")
def searching() -> Synthesised:
    return synthesise(
        settings_of(
            effects={
                **SEARCH,
                "search_index": "goods",
                "search_fields": {"price": "number", "made": "number"},
            },
            query={"source": "search", "order_field": "made"},
            bulk_lane=NAT,
        )
    )


@pytest.mark.parametrize("who", LOOKING)
def test_a_table_is_queried_where_it_is_the_source(
    stack: Synthesised, searching: Synthesised, who: str
) -> None:
    assert "dynamodb:Query" in actions_on(stack, who, "StorageRecords")
    assert "dynamodb:Query" not in actions_on(searching, who, "StorageRecords")


@pytest.mark.parametrize("who", LOOKING)
def test_an_index_is_searched_and_counted_where_it_is_the_source(
    searching: Synthesised, who: str
) -> None:
    reached = {path for _, resources in rights(searching, who, "es:") for path in listed(resources)}
    assert reached >= {f"{DOMAIN}/goods/{path}" for path in ("_search", "_count", "_mapping")}
    assert (who == "Api") is (f"{DOMAIN}/goods/_bulk" not in reached)


@pytest.mark.parametrize("who", ["Recovery", "SmallLane"])
def test_recovery_and_the_small_lane_look_for_nothing(searching: Synthesised, who: str) -> None:
    reached = {path for _, resources in rights(searching, who, "es:") for path in listed(resources)}
    assert reached == {f"{DOMAIN}/goods/{path}" for path in ("_bulk", "_mget", "_mapping")}


def test_workers_are_told(searching: Synthesised) -> None:
    variables = searching.properties("Lambda::Function", "SmallLane")["Environment"]["Variables"]
    assert variables[f"{PREFIX}QUERY_SOURCE"] == "search"
    assert variables[f"{PREFIX}QUERY_ORDER_FIELD"] == "made"


def test_a_search_needs_an_index() -> None:
    with pytest.raises(SettingsError, match="effects_search_url"):
        synthesise(settings_of(query={"source": "search"}))


def test_c102_a_search_needs_declared_fields() -> None:
    with pytest.raises(SettingsError, match="effects_search_fields"):
        synthesise(settings_of(effects=SEARCH, query={"source": "search"}, bulk_lane=NAT))


def test_an_order_field_needs_a_search() -> None:
    with pytest.raises(SettingsError, match="query_order_field"):
        settings_of(query={"order_field": "made"})


def test_a_worker_says_which_setting_is_missing(stack: Synthesised) -> None:
    variables = stack.properties("Lambda::Function", "SmallLane")["Environment"]["Variables"]
    env = {name: "x" if isinstance(value, dict) else value for name, value in variables.items()}
    assert WorkSettings.from_env(env).query.source == "table"
    with pytest.raises(SettingsError, match="effects_search_url"):
        WorkSettings.from_env({**env, f"{PREFIX}QUERY_SOURCE": "search"})
    with pytest.raises(SettingsError, match=f"{PREFIX}QUERY_SOURCE"):
        WorkSettings.from_env({**env, f"{PREFIX}QUERY_SOURCE": "elsewhere"})

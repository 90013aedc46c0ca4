"""Queries over the sparse indexes and over one partition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest

from handlers.jobs.words.writes import Index, Key, Put, Table, Update

if TYPE_CHECKING:
    from collections.abc import Callable

    from handlers.jobs.words.ports import Store
    from handlers.jobs.words.writes import Cursor, Item, Page


def due(store: Store, name: str, at: int, partition: str = "kind#0") -> None:
    item: Item = {Index.DUE.pk: partition, Index.DUE.sk: at, "name": name}
    store.transact("setup", [Put(Key(f"JOB#{name}", "JOB"), item)])


def names(page: Page) -> list[str]:
    return [found.key.pk.removeprefix("JOB#") for found in page.found]


def walk(query: Callable[[Cursor | None], Page]) -> list[list[str]]:
    """The names page by page; cursors go through JSON, as in the API."""
    pages: list[list[str]] = []
    after: Cursor | None = None
    while True:
        page = query(after)
        pages.append(names(page))
        if page.next is None:
            return pages
        after = json.loads(json.dumps(dict(page.next)))


def flat(pages: list[list[str]]) -> list[str]:
    return [name for page in pages for name in page]


def held(store: Store, name: str, partition: str = "t#small") -> None:
    item: Item = {Index.HELD.pk: partition, Index.HELD.sk: name}
    store.transact("setup", [Put(Key(f"JOB#{name}", "JOB"), item)])


def test_counting_what_comes_before(store: Store) -> None:
    for name in ("a", "b", "c", "d"):
        held(store, name)
    held(store, "aa", partition="t#bulk")

    def before(text: str, at_most: int = 10, partition: str = "t#small") -> int:
        return store.count(Index.HELD, partition, before=text, at_most=at_most)

    assert [before(text) for text in ("a", "b", "bb", "d", "e")] == [0, 1, 2, 3, 4]
    assert [before("e", at_most=most) for most in (1, 3, 4, 5)] == [1, 3, 4, 4]
    assert before("e", partition="t#bulk") == 1
    assert before("e", partition="u#small") == 0


def test_a_count_over_several_pages_of_answers(store: Store) -> None:
    """One answer of DynamoDB covers 1 MB of items."""
    for number in range(5):
        item: Item = {
            Index.HELD.pk: "t#small",
            Index.HELD.sk: f"{number}",
            "ids": "x" * 300_000,
        }
        store.transact("setup", [Put(Key(f"JOB#{number}", "JOB"), item)])
    assert store.count(Index.HELD, "t#small", before="9", at_most=100) == 5


def test_counting_before_a_number(store: Store) -> None:
    for name, at in (("a", 5), ("b", 40), ("c", 300)):
        due(store, name, at)
    counts = [store.count(Index.DUE, "kind#0", before=at, at_most=9) for at in (5, 6, 41, 2**53)]
    assert counts == [0, 1, 2, 3]


def test_a_number_is_not_counted_before_a_text(store: Store) -> None:
    with pytest.raises(ValueError, match="not sorted by"):
        store.count(Index.DUE, "kind#0", before="1", at_most=1)
    with pytest.raises(ValueError, match="not sorted by"):
        store.count(Index.HELD, "t#small", before=1, at_most=1)
    with pytest.raises(ValueError, match="not at least 1"):
        store.count(Index.HELD, "t#small", before="1", at_most=0)


def test_only_items_with_both_attributes_of_the_partition_are_in_an_index(store: Store) -> None:
    due(store, "in", 5)
    due(store, "elsewhere", 5, partition="kind#1")
    store.transact("setup", [Put(Key("JOB#half", "JOB"), {Index.DUE.pk: "kind#0"})])
    store.transact("setup", [Put(Key("JOB#none", "JOB"), {"name": "none"})])
    store.transact(
        "setup",
        [Put(Key("JOB#r", "x", Table.RECORDS), {Index.DUE.pk: "kind#0", Index.DUE.sk: 1})],
    )
    page = store.query(Index.DUE, "kind#0")
    assert names(page) == ["in"]
    assert page.found[0].key == Key("JOB#in", "JOB")
    assert page.found[0].item == {Index.DUE.pk: "kind#0", Index.DUE.sk: 5, "name": "in"}


def test_an_item_leaves_the_index_with_its_attribute(store: Store) -> None:
    due(store, "a", 5)
    update = Update(Key("JOB#a", "JOB"), remove=(Index.DUE.pk, Index.DUE.sk))
    store.transact("leave", [update])
    assert store.query(Index.DUE, "kind#0").found == ()
    assert store.get(Key("JOB#a", "JOB")) == {"name": "a"}


TIMES: Final = {"a": 9, "b": 100, "c": 1_764_400_000_123, "d": 10, "e": 0}


def test_numbers_sort_as_numbers(store: Store) -> None:
    for name, at in TIMES.items():
        due(store, name, at)
    assert names(store.query(Index.DUE, "kind#0")) == ["e", "a", "d", "b", "c"]
    assert names(store.query(Index.DUE, "kind#0", descending=True)) == ["c", "b", "d", "a", "e"]


@pytest.mark.parametrize(
    ("up_to", "expected"), [(-1, []), (0, ["e"]), (9, ["e", "a"]), (10, ["e", "a", "d"])]
)
def test_up_to_includes_its_number(store: Store, up_to: int, expected: list[str]) -> None:
    for name, at in TIMES.items():
        due(store, name, at)
    assert names(store.query(Index.DUE, "kind#0", up_to=up_to)) == expected
    backwards = store.query(Index.DUE, "kind#0", up_to=up_to, descending=True)
    assert names(backwards) == expected[::-1]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
def test_pages_follow_each_other_even_among_equal_sort_keys(
    store: Store, limit: int, *, descending: bool
) -> None:
    for number in range(7):
        due(store, f"{number}", at=number // 3)
    pages = walk(
        lambda after: store.query(
            Index.DUE, "kind#0", limit=limit, descending=descending, after=after
        )
    )
    assert all(len(page) <= limit for page in pages)
    # How an index orders equal sort keys is not documented.
    order = [int(name) // 3 for name in flat(pages)]
    assert order == sorted(order, reverse=descending)
    assert sorted(flat(pages)) == [str(number) for number in range(7)]


def test_pages_respect_up_to(store: Store) -> None:
    for number in range(7):
        due(store, f"{number}", at=number)
    pages = walk(lambda after: store.query(Index.DUE, "kind#0", limit=2, up_to=4, after=after))
    assert flat(pages) == ["0", "1", "2", "3", "4"]


def test_a_page_goes_on_although_its_last_item_is_gone(store: Store) -> None:
    for number in range(4):
        due(store, f"{number}", at=number)
    first = store.query(Index.DUE, "kind#0", limit=2)
    store.transact("leave", [Update(Key("JOB#1", "JOB"), remove=(Index.DUE.pk, Index.DUE.sk))])
    assert names(store.query(Index.DUE, "kind#0", after=first.next)) == ["2", "3"]


@pytest.mark.parametrize("index", [Index.BY_TENANT, Index.HELD])
def test_text_sorts_by_code_points(store: Store, index: Index) -> None:
    for number, name in enumerate(["B", "a", "ä", "😀", "10", "9"]):
        item: Item = {index.pk: "tenant", index.sk: name, "number": number}
        store.transact("setup", [Put(Key(f"JOB#{name}", "JOB"), item)])
    expected = ["10", "9", "B", "a", "ä", "😀"]
    assert flat(walk(lambda at: store.query(index, "tenant", limit=2, after=at))) == expected
    newest = walk(lambda at: store.query(index, "tenant", limit=4, descending=True, after=at))
    assert flat(newest) == expected[::-1]


@pytest.mark.parametrize("tenant", ["A", "a", "ä", "a\u0308", "a#b", "😀"])
def test_a_partition_is_one_tenant_byte_for_byte(store: Store, tenant: str) -> None:
    for one in ["A", "a", "ä", "a\u0308", "a#b", "😀"]:
        item = {Index.BY_TENANT.pk: one, Index.BY_TENANT.sk: "1"}
        store.transact("setup", [Put(Key(f"JOB#{one}", "JOB"), item)])
    assert names(store.query(Index.BY_TENANT, tenant)) == [tenant]


def test_a_partition_is_read_by_prefix(store: Store) -> None:
    for sk in ["JOB", "DISPATCH#2", "DISPATCH#10", "EFFECT#1", "DISPATCH", "dispatch#1"]:
        store.transact("setup", [Put(Key("JOB#1", sk), {"sk_was": sk})])
    store.transact("setup", [Put(Key("JOB#10", "DISPATCH#1"), {})])
    page = store.query_partition("JOB#1", sk_prefix="DISPATCH#")
    assert [found.key.sk for found in page.found] == ["DISPATCH#10", "DISPATCH#2"]
    assert page.found[0].item == {"sk_was": "DISPATCH#10"}
    everything = store.query_partition("JOB#1", sk_prefix="")
    assert len(everything.found) == 6


def test_a_partition_is_read_in_pages(store: Store) -> None:
    for number in range(5):
        store.transact("setup", [Put(Key("JOB#1", f"EFFECT#{number}"), {})])
    seen: list[str] = []
    after: Cursor | None = None
    while True:
        page = store.query_partition("JOB#1", sk_prefix="EFFECT#", limit=2, after=after)
        seen += [found.key.sk for found in page.found]
        if page.next is None:
            break
        after = page.next
    assert seen == [f"EFFECT#{number}" for number in range(5)]


def test_what_was_found_is_a_copy(store: Store) -> None:
    store.transact("setup", [Put(Key("JOB#1", "JOB"), {"list": [1]})])
    found: Any = store.query_partition("JOB#1", sk_prefix="").found[0].item
    found["list"].append(2)
    assert store.get(Key("JOB#1", "JOB")) == {"list": [1]}


def test_mistakes_are_errors(store: Store) -> None:
    with pytest.raises(ValueError, match="limit"):
        store.query(Index.DUE, "kind#0", limit=0)
    with pytest.raises(ValueError, match="number"):
        store.query(Index.BY_TENANT, "tenant", up_to=1)

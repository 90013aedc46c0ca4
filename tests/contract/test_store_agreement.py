"""Whatever is written, the store in memory answers as DynamoDB (moto) does."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.jobs.words.errors import Refused
from handlers.jobs.words.writes import (
    AnyOf,
    AtMost,
    Below,
    Check,
    Delete,
    Differs,
    Equals,
    Key,
    Missing,
    Present,
    Put,
    Table,
    Update,
)
from handlers.testing.job_store import MemoryStore
from tests.support import aws

if TYPE_CHECKING:
    from handlers.jobs.words.ports import Store
    from handlers.jobs.words.writes import Condition, Item, Value, Write

    Answer: TypeAlias = list[tuple[str, Item | None] | None]

# One type per attribute: moto does not compare values of two types as DynamoDB does.
NUMBERS = ("n", "m")
TEXTS = ("t", "size")
KEYS = [Key(pk, "s", table) for pk in ("a", "b", "c") for table in Table]

numbers = st.integers(-3, 3) | st.sampled_from([Decimal("0.5"), Decimal("-1.25"), Decimal("2.0")])
texts = st.sampled_from(["", "a", "b", "ä", "7", "07"])
number_attributes = st.dictionaries(st.sampled_from(NUMBERS), numbers, max_size=2)
text_attributes = st.dictionaries(st.sampled_from(TEXTS), texts, max_size=2)
pairs = st.tuples(st.sampled_from(NUMBERS), numbers) | st.tuples(st.sampled_from(TEXTS), texts)
simple: st.SearchStrategy[Condition] = st.one_of(
    st.builds(lambda pair: Equals(*pair), pairs),
    st.builds(lambda pair: Differs(*pair), pairs),
    st.builds(lambda pair: Below(*pair), pairs),
    st.builds(lambda pair: AtMost(*pair), pairs),
    st.builds(Missing, st.sampled_from((*NUMBERS, *TEXTS))),
    st.builds(Present, st.sampled_from((*NUMBERS, *TEXTS))),
)
conditions = simple | st.builds(AnyOf, st.lists(simple, min_size=1, max_size=3).map(tuple))
whens = st.lists(conditions, max_size=2).map(tuple)


@st.composite
def writes_on(draw: st.DrawFn, key: Key) -> Write:
    when = draw(whens)
    kind = draw(st.sampled_from(["put", "update", "delete", "check"]))
    if kind == "delete":
        return Delete(key, when)
    if kind == "check":
        return Check(key, when or (draw(simple),))
    item: dict[str, Value] = {**draw(number_attributes), **draw(text_attributes)}
    if kind == "put":
        return Put(key, item, when)
    add = draw(st.dictionaries(st.sampled_from(("m", "k")), st.integers(-2, 2), max_size=1))
    rest = [name for name in (*NUMBERS, *TEXTS) if name not in item and name not in add]
    remove = draw(st.lists(st.sampled_from(rest), unique=True)) if rest else []
    item = {name: value for name, value in item.items() if name not in add}
    return Update(key, item or {"n": 1}, add, tuple(r for r in remove if r != "n"), when)


@st.composite
def transactions(draw: st.DrawFn) -> list[Write]:
    keys = draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=4, unique=True))
    return [draw(writes_on(key)) for key in keys]


def answer(store: Store, writes: list[Write]) -> Answer:
    try:
        store.transact("any", writes)
    except Refused as refused:
        return [(r.why.value, r.item) if r else None for r in refused.reasons]
    return []


@settings(max_examples=40)
@given(st.lists(transactions(), min_size=1, max_size=6))
def test_both_stores_give_the_same_answers_and_end_the_same(sequence: list[list[Write]]) -> None:
    memory = MemoryStore()
    with aws.moto() as made:
        dynamo = aws.job_store(made)
        for writes in sequence:
            assert answer(memory, writes) == answer(dynamo, writes)
            assert [memory.get(key) for key in KEYS] == [dynamo.get(key) for key in KEYS]

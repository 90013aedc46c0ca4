"""The key of a delivery, and how its tries are counted."""

from __future__ import annotations

from dataclasses import replace

from handlers.jobs.words.effect import Batch, Effect

EFFECT = Effect("j", 5, "acme", "bump", "small", versions={"a": 2}, todo={"index": None}, tries=2)


def test_every_try_of_a_chunk_has_the_same_key() -> None:
    first = Batch("j", 5, "acme", "bump", [])
    assert first.key == replace(first, instead_of={"a": 1}).key == "j:5"
    assert replace(first, position=6).key != first.key


def test_a_claim_has_counted_its_try_already() -> None:
    assert EFFECT.tries_after == 3
    assert replace(EFFECT, claimed_until=7).tries_after == 2
